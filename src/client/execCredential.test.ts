import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { type ExecConfig, execCredentials } from './execCredential.ts'
import { resolveKubeconfig } from './kubeconfig.ts'

const v1 = 'client.authentication.k8s.io/v1'
const answer = (status: object | undefined, apiVersion = v1) => JSON.stringify({ apiVersion, kind: 'ExecCredential', status })

function plugin(texts: (string | Error)[], config: Partial<ExecConfig> = {}, interactive = false) {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const runs: { command: string; args: readonly string[]; env: Readonly<Record<string, string>>; interactive: boolean }[] = []
  const plugins = {
    interactive,
    run: async (command: string, args: readonly string[], env: Readonly<Record<string, string>>, asks: boolean) => {
      runs.push({ command, args, env, interactive: asks })
      const text = texts.shift()
      if (text === undefined || text instanceof Error) throw text ?? new Error('exit code 1')
      return text
    },
  }
  const source = () => execCredentials({ apiVersion: v1, command: 'login', interactiveMode: 'IfAvailable', ...config }, { server: 's' }, { clock, plugins })
  return { clock, runs, plugins, source }
}

test('AUN-10 CGO-06 a credential program runs once for all who wait, again when its answer has expired, and when a server refuses it', async () => {
  const expiring = (token: string) => answer({ token, expirationTimestamp: '2026-01-01T00:01:00Z' })
  const { clock, runs, source } = plugin([expiring('one'), expiring('two'), answer({ token: 'three' }), answer({ token: 'four' })])
  const credentials = source()
  const [first, same] = await Promise.all([credentials.get(), credentials.get()])
  assert.deepEqual([first.token, same === first, runs.length], ['one', true, 1])
  await clock.advance(60_000)
  assert.equal((await credentials.get()).token, 'one', 'valid until then, that moment too')
  await clock.advance(1)
  assert.equal((await credentials.get()).token, 'two')
  await clock.advance(1)
  const third = await credentials.get()
  assert.equal(third.token, 'three')
  await Promise.all([credentials.refresh(third), credentials.refresh(third)])
  assert.deepEqual([(await credentials.get()).token, runs.length], ['four', 4])
  await credentials.refresh(third)
  assert.equal(runs.length, 4, 'what was refused is not what is used any more')
})

test('AUN-10 CGO-06 the program gets its configuration, and may prompt only on a terminal', async () => {
  const { runs, source } = plugin([answer({ token: 't' })], { args: ['-a'], env: [{ name: 'E', value: '1' }], provideClusterInfo: true }, true)
  await source().get()
  const { KUBERNETES_EXEC_INFO: info = '', ...env } = runs[0]?.env ?? {}
  assert.deepEqual([runs[0]?.command, runs[0]?.args, env, runs[0]?.interactive], ['login', ['-a'], { E: '1' }, true])
  assert.deepEqual(JSON.parse(info), { kind: 'ExecCredential', apiVersion: v1, spec: { interactive: true, cluster: { server: 's' } } })
  assert.throws(() => plugin([], { interactiveMode: 'Always' }).source(), /standard input is not a terminal/)
  assert.throws(() => plugin([], { interactiveMode: undefined }).source(), /unknown interactiveMode: ""/)
  assert.throws(() => plugin([], { apiVersion: 'v0' }).source(), /invalid apiVersion "v0"/)
})

const missing = Object.assign(new Error('spawn'), { code: 'ENOENT' })
const faults: readonly [string, string | Error, RegExp][] = [
  ['is not there', missing, /executable login not found\n\nget it/],
  ['fails', new Error('exit code 3'), /executable login failed: exit code 3/],
  ['writes no JSON', 'hello', /decoding stdout/],
  ['writes something else', '{}', /not an ExecCredential/],
  ['speaks another version', answer({ token: 't' }, `${v1}beta1`), /plugin returned version client.authentication.k8s.io\/v1beta1/],
  ['gives no status', answer(undefined), /didn't return a status field/],
  ['gives nothing', answer({}), /didn't return a token or cert\/key pair/],
  ['gives half a pair', answer({ clientKeyData: 'k' }), /only certificate or key, not both/],
]
for (const [name, text, error] of faults) {
  test(`CGO-06 a credential program that ${name} is reported`, async () => {
    await assert.rejects(plugin([text], { installHint: 'get it' }).source().get(), error)
  })
}

test('AUN-10 CGO-06 a kubeconfig passes the cluster to its credential program; other credentials of the user take precedence', async () => {
  const { clock, runs, plugins } = plugin([answer({ token: 't' })])
  const exec = { apiVersion: v1, command: 'login', interactiveMode: 'Never' as const, provideClusterInfo: true }
  const extension = { audience: 'me' }
  const config = (user: object) => ({
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'c', user: 'u' } }],
    clusters: [
      { name: 'c', cluster: { server: 'https://x', 'certificate-authority': 'ca', extensions: [{ name: 'client.authentication.k8s.io/exec', extension }] } },
    ],
    users: [{ name: 'u', user }],
  })
  const deps = { clock, plugins, readFile: async () => Buffer.from('CA') }
  const { transport } = await resolveKubeconfig(config({ exec }), deps)
  assert.equal((await transport.credentials?.get())?.token, 't')
  assert.deepEqual(JSON.parse(runs[0]?.env.KUBERNETES_EXEC_INFO ?? '').spec.cluster, {
    server: 'https://x',
    'certificate-authority-data': Buffer.from('CA').toString('base64'),
    config: extension,
  })
  assert.equal((await resolveKubeconfig(config({ exec, token: 'own' }), deps)).transport.credentials, undefined)
  await assert.rejects(resolveKubeconfig(config({ exec }), { clock, readFile: deps.readFile }), /needs a credential plugin/)
})
