/**
 * The VerticalPodAutoscaler as upstream's manifests deploy it, on a cluster with a real node. `run` builds its programs into WORK/bin and names the folder of its
 * MANIFESTS. A container that uses all of the processor that its limit allows gets a larger request while it runs.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { createExec } from '#host/exec'
import { busyboxImage } from '#kubelet/images/busyboxImage'
import { ociTar } from '#kubelet/images/ociTar'
import { LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'
import { openSsl } from '../../support/openssl.ts'
import { install } from '../support/install.ts'
import { type ApiObject, apply, kubectl, list, read, step, until } from '../support/kubectl.ts'

const { WORK = '', MANIFESTS = '' } = process.env
const system = 'kube-system'
const image = 'docker.io/library/busybox:1'
const name = 'busy'
const [requested, limit] = [50, 200]
/** With upstream's own, it takes days until bounds are narrow, and a minute until anything is looked at. */
const shorter: Readonly<Record<string, readonly string[]>> = {
  recommender: ['--recommender-interval=2s', '--confidence-interval-cpu=1m', '--confidence-interval-memory=1m'],
  updater: ['--updater-interval=3s', '--min-replicas=1'],
}
const programs = ['recommender', 'updater', 'admission-controller']

interface Pod extends ApiObject {
  readonly spec: { readonly containers: readonly { readonly resources: Resources }[] }
  readonly status?: ApiObject['status'] & { readonly containerStatuses?: readonly { readonly restartCount: number; readonly resources?: Resources }[] }
}
interface Resources {
  readonly requests?: { readonly cpu?: string }
}

const fromModule = (file: string) => fs.readFileSync(path.join(MANIFESTS, file), 'utf8')
const unchanged = (document: string) => document
const withShorterIntervals = (program: string) => (document: string) => {
  const args = shorter[program]
  return args ? document.replace(/^( *)imagePullPolicy: .*$/m, (line, indent: string) => `${line}\n${indent}args: ${JSON.stringify(args)}`) : document
}

async function loadImages(cluster: LocalCluster): Promise<void> {
  const tars = programs.map((program): readonly [string, Buffer] => {
    const [, imageName = ''] = /^\s*image: (\S+)/m.exec(fromModule(`${program}-deployment.yaml`)) ?? []
    const file = { path: program, type: 'file', mode: 0o755, data: fs.readFileSync(path.join(WORK, 'bin', program)) } as const
    return [program, ociTar({ names: [imageName], entrypoint: [`/${program}`], files: [file] })]
  })
  const paths = [...tars, ['busybox', await busyboxImage(createExec(), [image])] as const].map(([tar, data]) => {
    const file = path.join(cluster.dir, `${tar}.tar`)
    fs.writeFileSync(file, data)
    return file
  })
  const { code, stderr } = await cluster.skiff(['image', 'load', '--name', cluster.name, ...paths])
  assert.equal(code, 0, stderr)
}

/** The Secret that upstream's script makes. */
async function makeCertificates(): Promise<void> {
  const openssl = openSsl()
  const authority = openssl.authority('vpa_webhook_ca')
  const server = openssl.sign(authority, { subject: '/CN=vpa-webhook', usage: 'serverAuth', names: `DNS:vpa-webhook.${system}.svc` })
  openssl.remove()
  const stringData = { 'caCert.pem': authority.cert, 'caKey.pem': authority.key, 'serverCert.pem': server.cert, 'serverKey.pem': server.key }
  await apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'vpa-tls-certs', namespace: system }, stringData })
}

/** Uses all of its limit, which stays: only the request follows. */
function workload(): object[] {
  const labels = { app: name }
  const resources = { requests: { cpu: `${requested}m`, memory: '16Mi' }, limits: { cpu: `${limit}m` } }
  const container = { name: 'main', image, command: ['sh', '-c', 'trap "exit 0" TERM; while :; do :; done'], resources }
  const template = { metadata: { labels }, spec: { containers: [container] } }
  const targetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name }
  const resourcePolicy = { containerPolicies: [{ containerName: 'main', controlledResources: ['cpu'], controlledValues: 'RequestsOnly' }] }
  return [
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'default' }, spec: { replicas: 1, selector: { matchLabels: labels }, template } },
    {
      apiVersion: 'autoscaling.k8s.io/v1',
      kind: 'VerticalPodAutoscaler',
      metadata: { name, namespace: 'default' },
      spec: { targetRef, resourcePolicy, updatePolicy: { updateMode: 'InPlaceOrRecreate' } },
    },
  ]
}

const pods = () => list<Pod>('pods', '-l', `app=${name}`)
const milli = (cpu = '0') => (cpu.endsWith('m') ? Number(cpu.slice(0, -1)) : Number(cpu) * 1000)
const requestOf = ({ spec }: Pod) => milli(spec.containers[0]?.resources.requests?.cpu)
/** The weight of the container's processor time: of version 1 of cgroups, or of version 2. */
const weight = async (pod: string) =>
  Number(await kubectl(['exec', pod, '--', 'sh', '-c', 'cat /sys/fs/cgroup/cpu/cpu.shares 2>/dev/null || cat /sys/fs/cgroup/cpu.weight']))

async function installation(): Promise<void> {
  await step('AUT-03 the three programs become available on a real node, and the webhook registers itself', async () => {
    for (const file of ['vpa-v1-crd-gen.yaml', 'vpa-rbac.yaml', 'admission-controller-service.yaml']) await install(fromModule(file), unchanged)
    await makeCertificates()
    for (const program of programs) await install(fromModule(`${program}-deployment.yaml`), withShorterIntervals(program))
    for (const program of programs) await kubectl(['rollout', 'status', `deployment/vpa-${program}`, '-n', system, '--timeout=180s'])
    await until('the webhook is registered', () => read('mutatingwebhookconfiguration', 'vpa-webhook-config'), Boolean)
  })
}

async function scaling(): Promise<void> {
  await step('AUT-03 the updater raises the request of a running container to what it uses, without a restart', async () => {
    await apply(...workload())
    await kubectl(['rollout', 'status', `deployment/${name}`, '--timeout=120s'])
    const [before] = await pods()
    assert.ok(before)
    const weightBefore = await weight(before.metadata.name)
    const isRaised = (all: readonly Pod[]) => all.some((pod) => pod.metadata.uid === before.metadata.uid && isActual(pod))
    await until('the container has the larger request', pods, isRaised, 240_000)
    assert.ok((await weight(before.metadata.name)) > 2 * weightBefore, `${weightBefore}`)
  })

  await step('AUT-03 the webhook on a real node gives a new pod the request that was recommended', async () => {
    await kubectl(['scale', `deployment/${name}`, '--replicas=2'])
    const all = await until('a second pod', pods, ({ length }) => length === 2)
    assert.deepEqual(
      all.map(requestOf).filter((cpu) => cpu < limit * 0.75),
      [],
    )
  })
}

/** The request is near the limit, the kubelet reports it, and the container was not restarted. */
function isActual(pod: Pod): boolean {
  const [status] = pod.status?.containerStatuses ?? []
  const [wanted, actual] = [requestOf(pod), milli(status?.resources?.requests?.cpu)]
  return wanted >= limit * 0.75 && wanted <= limit && actual === wanted && status?.restartCount === 0
}

async function showState(): Promise<void> {
  const show = async (...args: string[]) => console.log(await kubectl(args).catch(String))
  await show('get', 'nodes,pods,deployments', '-A', '-o', 'wide')
  await show('get', 'verticalpodautoscalers', '-A', '-o', 'yaml')
  await show('get', 'events', '-A', '--sort-by=.lastTimestamp')
  for (const program of programs) await show('logs', `deployment/vpa-${program}`, '-n', system, '--tail=30')
}

async function onRealNode(): Promise<void> {
  const obstacle = obstacleToCluster(true)
  if (obstacle) {
    console.log(`not on a real node: ${obstacle}`)
    return
  }
  const cluster = await LocalCluster.start('vpa', ['--nodes', '1'])
  // The steps' kubectl talks to this cluster, not to the one that runSuites.ts started.
  process.env.KUBECONFIG = cluster.env.KUBECONFIG
  try {
    await loadImages(cluster)
    await installation()
    await scaling()
  } catch (error) {
    console.log((error as Error).stack)
    await showState()
    process.exitCode = 1
  } finally {
    await cluster.delete()
  }
}

await onRealNode()
