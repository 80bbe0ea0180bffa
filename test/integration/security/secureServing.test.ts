/** How the port speaks TLS and HTTP/2, by kube-apiserver's flags (SDR-07, API-02), seen by the real openssl and by Node's own client. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { renameSync } from 'node:fs'
import http2 from 'node:http2'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { connect } from 'node:tls'
import type { Listener } from '#apiserver/server/listener'
import { noLog } from '#base/log'
import { createConfigFile } from '#main/apiserver/configFile'
import { followCertificates, tlsFromOptions } from '#main/apiserver/fromOptions'
import type { UsageError } from '#main/apiserver/options/flags'
import { serverOptions } from '#main/apiserver/options/index'
import { namedCertificates } from '#main/apiserver/options/secureServing'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { type Certificate, openSsl } from '../../support/openssl.ts'

const ssl = openSsl()
const authority = ssl.authority('serving-ca')
const serving = (subject: string, names?: string) => ssl.sign(authority, { subject, usage: 'serverAuth', ...(names ? { names } : {}) })
const files = (name: string, { cert, key }: Certificate) => `${ssl.file(`${name}.crt`, cert)},${ssl.file(`${name}.key`, key)}`
const own = serving('/CN=own', 'IP:127.0.0.1,DNS:localhost')
const open: (() => Promise<void>)[] = []
let api: TestApiServer
before(async () => {
  api = await startTestApiServer()
})
after(async () => {
  for (const close of open) await close()
  await api.close()
  ssl.remove()
})

const optionsOf = (flags: readonly string[]) => serverOptions(flags, { file: (name) => createConfigFile(name, realClock) })

async function faultsOf(flags: readonly string[]): Promise<readonly string[]> {
  return optionsOf(flags).then(
    () => [],
    (error: UsageError) => error.faults,
  )
}

async function listenWith(...flags: string[]): Promise<Listener> {
  const options = await optionsOf(flags)
  const tls = () => tlsFromOptions(options, own, {})
  const listener = await api.server.listen({ ...options.secureServing.listen, host: '127.0.0.1', port: 0, tls: tls() })
  const stop = new AbortController()
  followCertificates(
    options.secureServing.named.map(({ pair }) => pair),
    () => listener.setTls(tls()),
    noLog,
    stop.signal,
  )
  open.push(() => listener.close())
  open.push(async () => stop.abort())
  return listener
}

/** The output of openssl's client for a handshake. */
function handshake({ port }: Listener, ...args: string[]): Promise<{ readonly protocol: string; readonly cipher: string; readonly failed: boolean }> {
  return new Promise((resolve) => {
    const child = execFile('openssl', ['s_client', '-brief', '-connect', `127.0.0.1:${port}`, ...args], (error, stdout, stderr) => {
      const found = (name: string) => new RegExp(`${name}: (\\S+)`).exec(`${stdout}${stderr}`)?.[1] ?? ''
      resolve({ protocol: found('Protocol version'), cipher: found('Ciphersuite'), failed: error !== null })
    })
    child.stdin?.end('Q\n')
  })
}

/** The common name that the server shows to a client that asks for a name. */
async function shownTo({ port }: Listener, servername = ''): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { subject } = socket.getPeerCertificate()
  socket.destroy()
  return String(subject.CN)
}

const http2Needs =
  'error configuring http2: http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher (need at least one of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)'

describe('SDR-07 versions and suites', () => {
  test('without flags 1.2 is the oldest', async () => {
    const listener = await listenWith()
    assert.deepEqual(await handshake(listener, '-tls1_3'), { protocol: 'TLSv1.3', cipher: 'TLS_AES_128_GCM_SHA256', failed: false })
    assert.equal((await handshake(listener, '-tls1_2')).protocol, 'TLSv1.2')
    assert.equal((await handshake(listener, '-tls1_1')).failed, true)
  })

  test('--tls-min-version', async () => {
    const listener = await listenWith('--tls-min-version=VersionTLS13')
    assert.deepEqual([(await handshake(listener, '-tls1_3')).protocol, (await handshake(listener, '-tls1_2')).failed], ['TLSv1.3', true])
  })

  test('--tls-cipher-suites binds TLS 1.2, and leaves 1.3 alone', async () => {
    const listener = await listenWith('--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384')
    assert.equal((await handshake(listener, '-tls1_2')).cipher, 'ECDHE-RSA-AES128-GCM-SHA256')
    assert.equal((await handshake(listener, '-tls1_2', '-cipher', 'ECDHE-RSA-AES256-GCM-SHA384')).failed, true)
    assert.equal((await handshake(listener, '-tls1_3', '-ciphersuites', 'TLS_CHACHA20_POLY1305_SHA256')).cipher, 'TLS_CHACHA20_POLY1305_SHA256')
  })

  test('--tls-curve-preferences', async () => {
    const listener = await listenWith('--tls-curve-preferences=24')
    assert.deepEqual([(await handshake(listener, '-groups', 'P-384')).failed, (await handshake(listener, '-groups', 'X25519')).failed], [false, true])
  })

  test('all errors in them are reported together', async () => {
    const flags = [
      '--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA,X',
      '--tls-min-version=TLS1.2',
      '--tls-curve-preferences=1',
      '--http2-max-streams-per-connection=-1',
    ]
    assert.deepEqual(await faultsOf(flags), [
      "Cipher suite TLS_RSA_WITH_RC4_128_SHA not supported or doesn't exist",
      "Cipher suite X not supported or doesn't exist",
      'unknown tls version "TLS1.2"',
      http2Needs,
      'curve preference 1 is not supported by this server',
    ])
  })
})

describe('SDR-07 --tls-sni-cert-key', () => {
  test('names that were given count before names of certificates, exact ones before wildcards, earlier flags before later ones', async () => {
    const listener = await listenWith(
      `--tls-sni-cert-key=${files('given', serving('/CN=given'))}:api.example.com,*.example.org`,
      `--tls-sni-cert-key=${files('two', serving('/CN=two.example.com', 'DNS:api.example.com,DNS:other.example.org,DNS:*.wild.example.com'))}`,
      `--tls-sni-cert-key=${files('late', serving('/CN=two.example.com', 'DNS:late.example.com'))}`,
    )
    const asked = [
      '',
      'localhost',
      'api.example.com',
      'API.example.com',
      'other.example.org',
      'any.example.org',
      'a.b.example.org',
      'x.wild.example.com',
      'late.example.com',
    ]
    const shown = await Promise.all(asked.map((name) => shownTo(listener, name)))
    const two = 'two.example.com'
    assert.deepEqual(shown, ['own', 'own', 'given', 'given', two, 'given', 'own', two, two])
  })

  test('a client certificate is asked for and judged under every name', async () => {
    const clients = ssl.authority('clients')
    const jane = ssl.sign(clients, { subject: '/CN=jane' })
    const options = await optionsOf([`--tls-sni-cert-key=${files('n', serving('/CN=n.example.com'))}`])
    const listener = await api.server.listen({ host: '127.0.0.1', port: 0, tls: tlsFromOptions(options, own, { clientCa: clients.cert }) })
    open.push(() => listener.close())
    for (const servername of ['localhost', 'n.example.com']) {
      const socket = connect({ host: '127.0.0.1', port: listener.port, servername, rejectUnauthorized: false, ...jane, ALPNProtocols: ['h2'] })
      await once(socket, 'secureConnect')
      assert.equal(socket.alpnProtocol, 'h2')
      socket.destroy()
    }
  })

  test('a pair that changes is taken up', async () => {
    const flag = files('changing', serving('/CN=before'))
    const listener = await listenWith(`--tls-sni-cert-key=${flag}:changing.example.com`)
    assert.equal(await shownTo(listener, 'changing.example.com'), 'before')
    const next = serving('/CN=after')
    for (const [end, text] of [
      ['key', next.key],
      ['crt', next.cert],
    ] as const)
      renameSync(ssl.file(`next.${end}`, text), join(ssl.folder, `changing.${end}`))
    const deadline = Date.now() + 60_000
    while ((await shownTo(listener, 'changing.example.com')) !== 'after' && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
    assert.equal(await shownTo(listener, 'changing.example.com'), 'after')
  })

  test('unusable values are refused', async () => {
    const pair = files('good', serving('/CN=good'))
    const [cert = '', key = ''] = pair.split(',')
    const other = files('bad', serving('/CN=bad')).split(',')[1]
    const cases: readonly [string, RegExp][] = [
      [cert, /expected comma separated certificate and key file paths$/],
      [`${pair}:`, /empty names list is not allowed$/],
      [`${cert},${other}`, /^tls: private key does not match public key$/],
      [`/nowhere,${key}`, /^\/nowhere cannot be read/],
    ]
    for (const [value, want] of cases) assert.match((await faultsOf([`--tls-sni-cert-key=${value}`])).join(), want)
    assert.deepEqual(
      namedCertificates((await optionsOf([`--tls-sni-cert-key=${pair}:a, b`])).secureServing).map(({ names }) => names),
      [['a', 'b']],
    )
  })
})

describe('API-02 HTTP/2', () => {
  const settingsOf = async (listener: Listener) => {
    const session = http2.connect(`https://127.0.0.1:${listener.port}`, { rejectUnauthorized: false })
    const [settings] = (await once(session, 'remoteSettings')) as [http2.Settings]
    session.destroy()
    return settings.maxConcurrentStreams
  }

  test('--http2-max-streams-per-connection', async () => {
    assert.equal(await settingsOf(await listenWith()), 100)
    assert.equal(await settingsOf(await listenWith('--http2-max-streams-per-connection=7')), 7)
  })

  test('--disable-http2-serving', async () => {
    const { port } = await listenWith('--disable-http2-serving')
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['h2', 'http/1.1'] })
    await once(socket, 'secureConnect')
    assert.equal(socket.alpnProtocol, 'http/1.1')
    socket.destroy()
  })

  test('--permit-port-sharing, where the runtime can', async () => {
    const [major = 0] = process.versions.node.split('.').map(Number)
    const flags = ['--permit-port-sharing', '--permit-address-sharing']
    if (major >= 24) return assert.equal((await optionsOf(flags)).secureServing.listen.sharesPort, true)
    assert.match(
      (await faultsOf(flags)).join(),
      major < 22 ? /^--permit-port-sharing needs Node.js 22.12 or later: this is / : /^(--permit-port-sharing needs .*)?$/,
    )
  })
})

test('API-03 --shutdown-delay-duration keeps the server serving, while readyz already fails', async () => {
  let wake = () => {}
  const clock = {
    ...realClock,
    sleep: (ms: number, signal?: AbortSignal) => (ms === 7_000 ? new Promise<void>((resolve) => (wake = resolve)) : realClock.sleep(ms, signal)),
  }
  const { generic } = await optionsOf(['--shutdown-delay-duration=7s'])
  const ending = await startTestApiServer({ clock, config: generic })
  const transport = ending.server.transport({ name: 'a', groups: ['system:masters'] }, 'test')
  const statusOf = (path: string) =>
    transport.request({ method: 'GET', path }).then(
      () => 200,
      (error: { readonly code: number }) => error.code,
    )
  assert.equal(await statusOf('/readyz'), 200)
  let isOver = false
  const announced = ending.server.announceShutdown().then(() => (isOver = true))
  assert.deepEqual(await Promise.all(['/readyz', '/livez', '/healthz', '/api/v1/namespaces'].map(statusOf)), [500, 200, 200, 200])
  assert.equal(isOver, false)
  wake()
  await announced
  await ending.close()
})

test('API-03 --cors-allowed-origins must fit whole hosts', async () => {
  const ok = ['//example\\.com(:|$)', '^https://example\\.com(:|$)']
  assert.deepEqual((await optionsOf(ok.map((one) => `--cors-allowed-origins=${one}`))).generic.corsAllowedOrigins, ok)
  for (const one of ['example.com', '.*', '//example.com', 'example.com$']) {
    assert.match((await faultsOf([`--cors-allowed-origins=${one}`])).join(), /does not pin to start\/end of host in the origin header/)
  }
  assert.match((await faultsOf(['--cors-allowed-origins=^($'])).join(), /^--cors-allowed-origins has an invalid regular expression: /)
})
