/**
 * Runs the compiled conformance suite inside the node's network namespace, where the address of every Gateway can be reached: only one of several Gateways with
 * the same port gets the node's own. Arguments: names of single tests.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { ociTar } from '../../../src/kubelet/images/ociTar.ts'
import { LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'

const skipped = 77
const name = 'suite-gateway'
const { WORK: work = '' } = process.env
const bin = path.join(work, 'bin')
/** The names under which the suite's manifests ask for the echo server. Its DNS server serves UDPRoutes only, which are not part of the profiles. */
const images = [
  'registry.k8s.io/gateway-api/echo-basic:v1.5.1',
  'registry.k8s.io/gateway-api/echo-basic:v1.6.0-dev.2',
  'registry.k8s.io/gateway-api/echo-basic:v1.6.0-dev.3',
  'registry.k8s.io/coredns/coredns:v1.12.2',
]
const profiles = 'GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS'

const obstacle = obstacleToCluster(true)
if (obstacle) {
  console.log(obstacle)
  process.exit(skipped)
}
const cluster = await LocalCluster.start(name, ['--nodes', '1', '--ingress'])
try {
  await loadEchoServer()
  const inNode = ['-t', String(await pidInNode()), '-n']
  const gateway = execFileSync('nsenter', [...inNode, 'ip', '-4', 'route', 'show', 'default'], { encoding: 'utf8' }).split(' ')[2] ?? ''
  const kubeconfig = path.join(cluster.dir, 'kubeconfig-of-node')
  const text = fs.readFileSync(path.join(cluster.dir, 'kubeconfig'), 'utf8')
  fs.writeFileSync(kubeconfig, text.replaceAll(/(server: ['"]?https:\/\/)[^:/]+/g, `$1${gateway}`), { mode: 0o600 })
  const picked = process.argv[2] === undefined ? [] : ['--run-test', process.argv[2]]
  const flags = ['--gateway-class', 'skiff', '--conformance-profiles', profiles, '--report-output', path.join(work, 'report.yaml'), ...picked]
  const about = ['--organization', 'skiff', '--project', 'skiff', '--url', 'https://skiff.dev', '--version', 'dev', '--contact', 'maintainers']
  const program = [path.join(bin, 'conformance.test'), '-test.v', '-test.timeout', '60m', ...flags, ...about]
  const suite = spawn('nsenter', [...inNode, ...program], { stdio: 'inherit', env: { ...cluster.env, KUBECONFIG: kubeconfig } })
  const [code] = (await once(suite, 'exit')) as [number | null]
  process.exitCode = code ?? 1
} finally {
  await cluster.delete()
}

async function loadEchoServer(): Promise<void> {
  const program = { path: 'echo-basic', type: 'file', mode: 0o755, data: fs.readFileSync(path.join(bin, 'echo-basic')) } as const
  const file = path.join(cluster.dir, 'echo-basic.tar')
  fs.writeFileSync(file, ociTar({ names: images, entrypoint: ['/echo-basic'], files: [program] }))
  const loaded = await cluster.skiff(['image', 'load', '--name', name, file])
  if (loaded.code !== 0) throw new Error(loaded.stderr)
}

/** The first process of the node. */
async function pidInNode(): Promise<number> {
  const { stdout } = await cluster.skiff(['status', name, '-o', 'json'])
  const { pids } = JSON.parse(stdout) as { pids: { role: string; pid: number }[] }
  const found = pids.find(({ role }) => role === 'node')
  if (!found) throw new Error(`the cluster has no node: ${stdout}`)
  return found.pid
}
