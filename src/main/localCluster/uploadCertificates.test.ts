/** What `skiff certs upload` writes, against a server that records it. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { CommandError } from '#cli/exitCodes'
import { parseCertificateKey } from '../join/certificateKey.ts'
import { unsealedEntries } from '../join/sharedCertificates.ts'
import type { ApiProbe } from './apiProbe.ts'
import { type ClusterState, clusterPaths } from './clusterState.ts'
import type { LocalClusterDeps } from './deps.ts'
import { loadPki } from './sharedPki.ts'
import { uploadCertificates } from './uploadCertificates.ts'

const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-upload-'))
after(() => fs.rm(home, { recursive: true }))
const deps = { clock: new VirtualClock('2026-01-01T00:00:00Z') } as unknown as LocalClusterDeps
const paths = clusterPaths(home, 'lab')
const key = '0f'.repeat(32)
const state: ClusterState = {
  name: 'lab',
  id: '0123',
  port: 6443,
  nodes: [],
  simulatedNodes: [],
  verbosity: 2,
  apiServerArgs: ['--etcd-servers=http://10.0.0.9:2379'],
}

interface Written {
  readonly metadata: { readonly name: string; readonly ownerReferences?: readonly { readonly name: string; readonly uid: string }[] }
  readonly stringData?: Readonly<Record<string, string>>
  readonly data?: Readonly<Record<string, string>>
}

function recording() {
  const calls: string[] = []
  const written: Written[] = []
  const probe = {
    post: async (_path: string, body: Written) => {
      calls.push(`post ${body.metadata.name.replace(/-[a-z0-9]{6}$/, '-ID')}`)
      written.push(body)
      return { status: 201, body: JSON.stringify({ metadata: { name: body.metadata.name, uid: 'U' } }) }
    },
    delete: async (where: string) => {
      calls.push(`delete ${path.basename(where)}`)
      return { status: 404, body: '' }
    },
  } as unknown as ApiProbe
  return { calls, written, probe }
}

test('HA-01 an upload makes a token for its lifetime that can do nothing, and the Secret that belongs to it', async () => {
  const { calls, written, probe } = recording()
  await fs.mkdir(paths.dir, { recursive: true })
  await uploadCertificates(deps, paths, state, key, probe)
  assert.deepEqual(calls, ['post bootstrap-token-ID', 'delete kubeadm-certs', 'post kubeadm-certs'])
  const [token, secret] = written
  const { 'token-id': id, 'token-secret': tokenSecret, ...others } = token?.stringData ?? {}
  assert.match(`${id}.${tokenSecret}`, /^[a-z0-9]{6}\.[a-z0-9]{16}$/)
  assert.deepEqual(others, { expiration: '2026-01-01T02:00:00Z', description: 'lifetime of kubeadm-certs' })
  assert.deepEqual(
    secret?.metadata.ownerReferences?.map(({ name, uid }) => ({ name, uid })),
    [{ name: token?.metadata.name, uid: 'U' }],
  )
  const pki = await loadPki(deps, paths, state)
  assert.equal(unsealedEntries(secret?.data ?? {}, parseCertificateKey(key), pki.ca.cert).ca.key, pki.ca.key)
})

const refused = [
  { name: 'in a file', state: { ...state, apiServerArgs: [] }, message: /keeps its objects in a file/ },
  {
    name: 'in an etcd of its own',
    state: { ...state, apiServerArgs: [], etcd: { token: 't', members: [] } },
    message: /in an etcd of its own, which listens on 127\.0\.0\.1/,
  },
  {
    name: 'in an etcd on loopback',
    state: { ...state, apiServerArgs: ['--etcd-servers=http://127.0.0.1:2379'] },
    message: /reaches its etcd at http:\/\/127\.0\.0\.1:2379: /,
  },
]
for (const { name, state: given, message } of refused) {
  test(`HA-01 nothing is uploaded for a cluster with its objects ${name}`, async () => {
    const { calls, probe } = recording()
    await assert.rejects(
      uploadCertificates(deps, paths, given, key, probe),
      (error: CommandError) => error.exit === 'unmetPrerequisite' && message.test(error.message) && /--etcd-servers/.test(error.hint ?? ''),
    )
    assert.deepEqual(calls, [])
  })
}
