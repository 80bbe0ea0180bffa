/** The sidecars and the snapshot controller of kubernetes-csi as Deployments, with the rights of their manifests. */
import fs from 'node:fs'
import path from 'node:path'
import { eventually, type LocalCluster } from '../../e2e/support/localCluster.ts'
import { applyAll, fileOf, loadImages } from './modules.ts'

const { WORK = '' } = process.env
const sidecars = ['provisioner', 'attacher', 'resizer', 'snapshotter'] as const
const snapshotController = 'snapshot-controller'
const setup = 'deploy/kubernetes/snapshot-controller/setup-snapshot-controller.yaml'
/** One of each sidecar, and the snapshot controller's. */
const leaseCount = sidecars.length + 1

/** Resolves when they hold their Leases. @param directory that of the driver's socket, as the node has it */
export async function deploySidecars(cluster: LocalCluster, directory: string): Promise<void> {
  const programs = [...sidecars.map((one) => `csi-${one}`), snapshotController]
  await loadImages(
    cluster,
    programs.map((program) => ({ name: imageOf(program), program: path.join(WORK, 'bin', program) })),
  )
  await cluster.mustWith(manifests(), ['apply', '--server-side', '-f', '-'])
  await applyAll(cluster, ...sidecars.map((one) => deploymentOf(`csi-${one}`, directory)))
  for (const one of sidecars) await cluster.must(['rollout', 'status', `deployment/csi-${one}`, '--timeout=60s'], 70_000)
  await eventually(
    'the Leases of all sidecars',
    90_000,
    async () => Object.keys(await leaseHolders(cluster)).length,
    (count) => count === leaseCount,
  )
}

/** Resolves when their pods are gone. */
export async function removeSidecars(cluster: LocalCluster): Promise<void> {
  const names = [snapshotController, ...sidecars.map((one) => `csi-${one}`)]
  await cluster.must(['delete', 'deployment', '--cascade=foreground', ...names, '--timeout=90s'], 100_000)
}

/** By the name of the Lease. */
export async function leaseHolders(cluster: LocalCluster): Promise<Record<string, string>> {
  const template = '{range .items[*]}{.metadata.name} {.spec.holderIdentity}{"\\n"}{end}'
  const lines = (await cluster.must(['get', 'leases', '-n', 'default', '-o', `jsonpath=${template}`])).split('\n')
  return Object.fromEntries(lines.map((line) => line.split(' ')).filter(([, holder]) => holder))
}

/** The name for which the manifest of the snapshot controller asks; those of the sidecars are the suite's. */
function imageOf(program: string): string {
  if (program !== snapshotController) return `skiff.internal/${program}:suite`
  return /image: (\S+)/.exec(fs.readFileSync(fileOf('external-snapshotter', setup), 'utf8'))?.[1] ?? ''
}

/** All in one namespace: the controllers of Skiff use the same Leases. */
function manifests(): string {
  const definitions = fileOf('external-snapshotter/client', 'config/crd')
  const ofSnapshots = ['csi-snapshotter/rbac-csi-snapshotter', 'snapshot-controller/rbac-snapshot-controller'].map((file) => `deploy/kubernetes/${file}.yaml`)
  const files = [
    ...fs
      .readdirSync(definitions)
      .filter((file) => /^(group)?snapshot\.storage/.test(file))
      .map((file) => path.join(definitions, file)),
    ...['external-provisioner', 'external-attacher', 'external-resizer'].map((module) => fileOf(module, 'deploy/kubernetes/rbac.yaml')),
    ...[...ofSnapshots, setup].map((file) => fileOf('external-snapshotter', file)),
  ]
  return files.map((file) => fs.readFileSync(file, 'utf8').replaceAll('namespace: kube-system', 'namespace: default')).join('\n---\n')
}

function deploymentOf(program: string, directory: string): object {
  const labels = { app: program }
  const args = ['--csi-address=/csi/csi.sock', '--leader-election', ...(program === 'csi-provisioner' ? ['--feature-gates=Topology=true'] : [])]
  const container = { name: program, image: imageOf(program), imagePullPolicy: 'IfNotPresent', args, volumeMounts: [{ name: 'socket', mountPath: '/csi' }] }
  const volumes = [{ name: 'socket', hostPath: { path: directory, type: 'Directory' } }]
  const template = { metadata: { labels }, spec: { serviceAccountName: program, containers: [container], volumes } }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: program, namespace: 'default' }, spec: { selector: { matchLabels: labels }, template } }
}
