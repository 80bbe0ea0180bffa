/** `skiff certs upload` (L5): what a further control plane needs goes into a Secret, sealed, for two hours. Upstream: kubeadm's phases/copycerts (v1.36). */
import fs from 'node:fs/promises'
import { bodyOf } from '#cli/answers'
import { bootstrapToken, bootstrapTokenSecret, secretsPath } from '#cli/bootstrapToken'
import type { CommandError } from '#cli/exitCodes'
import { parseCertificateKey } from '../join/certificateKey.ts'
import { type EtcdFlags, externalEtcdOf, sharedEtcdOf } from '../join/publishedConfiguration.ts'
import { certificatesSecret, type EtcdClientFiles, sealedEntries } from '../join/sharedCertificates.ts'
import { notShared, ownEndpoint } from '../join/sharedEtcd.ts'
import type { ApiProbe } from './apiProbe.ts'
import type { ClusterPaths, ClusterState } from './clusterState.ts'
import type { LocalClusterDeps } from './deps.ts'
import { loadPki } from './sharedPki.ts'

const livesMs = 2 * 3_600_000

export async function uploadCertificates(
  deps: LocalClusterDeps,
  paths: ClusterPaths,
  state: ClusterState,
  certificateKey: string,
  probe: ApiProbe,
): Promise<void> {
  const key = parseCertificateKey(certificateKey)
  const etcd = sharedEtcdOf(state)
  if (!etcd) throw unshared(state)
  const data = sealedEntries({ ...(await loadPki(deps, paths, state)), etcd: await etcdClientFiles(etcd) }, key)
  // The token can do nothing. It expires, its Secret is deleted then, and with it what it owns.
  const token = bootstrapTokenSecret(bootstrapToken(), { expiresMs: deps.clock.now() + livesMs, usages: [], description: `lifetime of ${certificatesSecret}` })
  const owner = JSON.parse(bodyOf(state.name, await probe.post(secretsPath, token))) as { readonly metadata: { readonly name: string; readonly uid: string } }
  const found = await probe.delete(`${secretsPath}/${certificatesSecret}`)
  if (found?.status !== 404) bodyOf(state.name, found)
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Secret', name: owner.metadata.name, uid: owner.metadata.uid, controller: true, blockOwnerDeletion: true }]
  const metadata = { namespace: 'kube-system', name: certificatesSecret, ownerReferences }
  bodyOf(state.name, await probe.post(secretsPath, { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data }))
}

function unshared(state: ClusterState): CommandError {
  const external = externalEtcdOf(state)
  const where = external
    ? `reaches its etcd at ${ownEndpoint(external.endpoints)}`
    : `keeps its objects ${state.etcd ? 'in an etcd of its own, which listens on 127.0.0.1 alone' : 'in a file'}`
  return notShared(`cluster "${state.name}" ${where}`)
}

async function etcdClientFiles({ caFile, certFile, keyFile }: EtcdFlags): Promise<EtcdClientFiles> {
  const [ca, cert, key] = await Promise.all([caFile, certFile, keyFile].map((file) => (file === '' ? '' : fs.readFile(file, 'utf8'))))
  return { ca: ca ?? '', cert: cert ?? '', key: key ?? '' }
}
