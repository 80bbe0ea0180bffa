import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { resolveKubeconfig } from './kubeconfig.ts'
import { findKubeconfig, type KubeconfigPlace } from './kubeconfigFiles.ts'

function place(files: Record<string, string>, env: Record<string, string> = {}): KubeconfigPlace {
  return {
    env,
    home: '/home/me',
    listSeparator: ':',
    resolve: path.posix.resolve,
    dirname: path.posix.dirname,
    readFile: async (file) => {
      const text = files[file]
      if (text === undefined) throw Object.assign(new Error(`${file} is not there`), { code: 'ENOENT' })
      return Buffer.from(text)
    },
  }
}

const one = `
current-context: a
clusters: [{name: c, cluster: {server: 'https://one', certificate-authority: ca.pem}}]
users: [{name: u, user: {tokenFile: ../token, exec: {command: ./bin/login}}}]
contexts: [{name: a, context: {cluster: c, user: u}}]
`
const two = `
current-context: b
clusters: [{name: c, cluster: {server: 'https://two'}}, {name: d, cluster: {server: 'https://three'}}]
users: [{name: u, user: {token: t}}, {name: v, user: {exec: {command: login}}}]
contexts: [{name: a, context: {cluster: d, user: v}}, {name: b, context: {cluster: d, user: v}}]
`

test('the first of several kubeconfigs that has an entry wins, and relative files start at the kubeconfig that names them', async () => {
  const files = { '/etc/k/one': one, '/two': two }
  const config = await findKubeconfig(place(files, { KUBECONFIG: '/nowhere:/etc/k/one:/two' }))
  assert.equal(config['current-context'], 'a')
  assert.deepEqual(
    config.clusters?.map(({ name, cluster }) => [name, cluster.server, cluster['certificate-authority']]),
    [
      ['c', 'https://one', '/etc/k/ca.pem'],
      ['d', 'https://three', undefined],
    ],
  )
  assert.deepEqual(
    config.users?.map(({ user }) => [user.token, user.tokenFile, user.exec?.command]),
    [
      [undefined, '/etc/token', '/etc/k/bin/login'],
      [undefined, undefined, 'login'],
    ],
  )
  assert.deepEqual(
    config.contexts?.map(({ name, context }) => [name, context.cluster]),
    [
      ['a', 'c'],
      ['b', 'd'],
    ],
  )
})

test('a file that is named alone must be there; without any, home and the pod are looked at', async () => {
  await assert.rejects(findKubeconfig(place({}), '/nowhere'), /is not there/)
  await assert.rejects(findKubeconfig(place({})), /neither \/home\/me\/.kube\/config is there/)
  await assert.rejects(findKubeconfig(place({ '/bad': 'a: [' }, { KUBECONFIG: '/bad' })), /error loading config file "\/bad"/)
  assert.equal((await findKubeconfig(place({ '/home/me/.kube/config': two })))['current-context'], 'b')

  const account = '/var/run/secrets/kubernetes.io/serviceaccount'
  const pod = place(
    { [`${account}/token`]: 'secret\n', [`${account}/ca.crt`]: 'CA', [`${account}/namespace`]: 'mine' },
    { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' },
  )
  const { namespace, transport } = await resolveKubeconfig(await findKubeconfig(pod), { clock: new VirtualClock(), readFile: pod.readFile })
  assert.deepEqual([namespace, transport.server, String(transport.tls?.ca)], ['mine', 'https://[fd00::1]:443', 'CA'])
  assert.equal(await (transport.bearerToken as () => Promise<string>)(), 'secret')
})
