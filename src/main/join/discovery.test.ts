/** Servers that describe a cluster, on loopback: the cluster's own, one that pretends to be it, and ones that do not answer as a cluster does. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { toYaml } from '#api/machinery/yaml'
import { VirtualClock } from '#base/virtualClock'
import type { CommandError } from '#cli/exitCodes'
import { publicKeyHash } from '#cli/publicKeyHash'
import { detachedSignature } from '#controllers/bootstrap/signer'
import { createAuthority, issueCertificate } from '../pki/certificates.ts'
import { createRealClock } from '../realClock.ts'
import { discoverCluster } from './discovery.ts'
import { acceptedAuthorities, parseToken } from './verifyClusterInfo.ts'

const nowMs = Date.now()
const secret = 'abcdef.0123456789abcdef'
const token = parseToken(secret)
const authority = await createAuthority('kubernetes', nowMs, 1)
const evil = await createAuthority('kubernetes', nowMs, 1)
const pin = `sha256:${publicKeyHash(authority.cert)}`
const options = { timeout: 20_000 }

const describe = (ca: string, server = 'https://10.0.0.1:6443') =>
  toYaml({ clusters: [{ name: '', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }] })
const signed = (kubeconfig: string) => ({ data: { kubeconfig, 'jws-kubeconfig-abcdef': detachedSignature(kubeconfig, token.id, token.secret) } })
const json = (body: unknown) => (_: IncomingMessage, response: ServerResponse) => void response.end(JSON.stringify(body))

/** @param by whose certificate the server shows */
async function serving(by: typeof authority, answer: (request: IncomingMessage, response: ServerResponse, count: number) => void) {
  const certificate = await issueCertificate(by, { commonName: 's', usage: 'server', hosts: ['127.0.0.1'], validDays: 1 }, nowMs)
  let count = 0
  const server = https.createServer(certificate, (request, response) => answer(request, response, ++count))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    place: { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    requests: () => count,
    [Symbol.dispose]: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const common = { token, clock: createRealClock(), signal: new AbortController().signal, authorities: acceptedAuthorities([pin], false) }
const refusedWith = (exit: CommandError['exit'], message: RegExp) => (error: CommandError) => error.exit === exit && message.test(error.message)

test('KUB-23 a machine that joins reads the description of the cluster twice, and trusts its authority', options, async () => {
  using server = await serving(authority, json(signed(describe(authority.cert))))
  assert.deepEqual(await discoverCluster({ ...common, place: server.place }), { server: 'https://10.0.0.1:6443', ca: `${authority.cert}\n` })
  assert.equal(server.requests(), 2)
})

const pretenders = [
  {
    name: 'that relays the description of the cluster',
    by: evil,
    ca: authority.cert,
    text: /certificate was not issued by the cluster's authority/,
    requests: 1,
  },
  { name: 'that knows the token, with an authority of its own', by: evil, ca: evil.cert, text: /has another public key/, requests: 1 },
  {
    name: "that knows the token, with its authority next to the cluster's",
    by: evil,
    ca: `${authority.cert}\n${evil.cert}`,
    text: /certificate was not issued by the cluster's authority/,
    requests: 1,
  },
] as const
for (const { name, by, ca, text: message, requests } of pretenders) {
  test(`KUB-23 a machine does not join a server ${name}`, options, async () => {
    using server = await serving(by, json(signed(describe(ca))))
    await assert.rejects(discoverCluster({ ...common, place: server.place }), refusedWith('conflict', message))
    assert.equal(server.requests(), requests)
  })
}

test('KUB-23 a machine does not join a cluster that describes itself differently to a client that has checked it', options, async () => {
  using server = await serving(authority, (request, response, count) =>
    json(signed(describe(authority.cert, `https://10.0.0.${count}:6443`)))(request, response),
  )
  await assert.rejects(discoverCluster({ ...common, place: server.place }), refusedWith('conflict', /described itself differently/))
})

const strange = [
  { name: 'no object', body: null },
  { name: 'data that is no map', body: { data: 7 } },
  { name: 'no data', body: { data: null } },
] as const
for (const { name, body } of strange) {
  test(`KUB-23 a machine reads the description again when a server sends ${name}`, options, async () => {
    using server = await serving(authority, (request, response, count) => json(count === 1 ? body : signed(describe(authority.cert)))(request, response))
    await discoverCluster({ ...common, place: server.place })
    assert.equal(server.requests(), 3)
  })
}

test('KUB-23 values of a description that are no text are ignored', options, async () => {
  using server = await serving(authority, json({ data: { kubeconfig: { toString: 1 }, 'jws-kubeconfig-abcdef': 'x' } }))
  await assert.rejects(discoverCluster({ ...common, place: server.place }), refusedWith('unmetPrerequisite', /no description/))
})

test('KUB-23 a server whose answer does not end is given up', options, async () => {
  using server = await serving(authority, (_, response) => void response.write('{'))
  const clock = new VirtualClock(nowMs)
  let ended = false
  const refused = assert
    .rejects(discoverCluster({ ...common, place: server.place, clock }), refusedWith('timeout', /no whole answer within 5 s/))
    .finally(() => {
      ended = true
    })
  while (!ended) {
    await clock.advance(500)
    await new Promise(setImmediate)
  }
  await refused
})

const self = [fileURLToPath(import.meta.resolve('tsx')), fileURLToPath(new URL('../skiff.ts', import.meta.url))]

/** Runs `skiff join` as a process of its own. */
function join(words: readonly string[], { input = '' } = {}) {
  const child = spawn(process.execPath, ['--import', ...self, 'join', ...words], { stdio: ['pipe', 'ignore', 'pipe'] })
  child.stdin.end(input)
  return { child, said: text(child.stderr), ended: once(child, 'exit') }
}

/** Also of another pin, so that the command ends before it writes anything. */
const flags = ['--discovery-token-ca-cert-hash', `sha256:${'0'.repeat(64)}`]

test('KUB-23 the arguments that other users see do not hold the token any more when the server is asked', {
  ...options,
  skip: !fs.existsSync('/proc'),
}, async () => {
  let shown = ''
  using server = await serving(authority, (request, response) => {
    shown = fs.readFileSync(`/proc/${joining.child.pid}/cmdline`, 'utf8')
    json(signed(describe(authority.cert)))(request, response)
  })
  const place = `127.0.0.1:${server.place.port}`
  const joining = join([place, '--token', secret, ...flags])
  assert.match(await joining.said, /has another public key/)
  assert.equal(shown.replace(/\0+$/, ''), `skiff join ${place}`)
})

for (const [name, isFile] of [
  ['a file', true],
  ['standard input', false],
] as const) {
  test(`KUB-23 a machine takes the token from ${name}`, options, async () => {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-join-'))
    const file = path.join(dir, 'token')
    fs.writeFileSync(file, `${secret}\n`, { mode: 0o600 })
    try {
      using server = await serving(authority, json(signed(describe(authority.cert))))
      const joining = join([`127.0.0.1:${server.place.port}`, '--token-file', isFile ? file : '-', ...flags], { input: isFile ? '' : `${secret}\n` })
      // The signature was checked with the token before the authority was.
      assert.match(await joining.said, /has another public key/)
      assert.deepEqual(await joining.ended, [7, null])
    } finally {
      fs.rmSync(dir, { recursive: true })
    }
  })
}

test('HA-01 a machine takes the certificate key from standard input, from which not both secrets can come', options, async () => {
  const words = ['127.0.0.1:1', '--control-plane', '--certificate-key-file', '-', ...flags]
  const taken = join([...words, '--token', secret], { input: 'no key\n' })
  assert.match(await taken.said, /--certificate-key: expected 64 hexadecimal digits/)
  const both = join([...words, '--token-file', '-'])
  assert.match(await both.said, /standard input can be one of them/)
  assert.deepEqual([await taken.ended, await both.ended].flat(), [2, null, 2, null])
})

test('KUB-23 a signal ends the search for the cluster', { ...options, skip: process.platform === 'win32' }, async () => {
  using server = await serving(authority, () => joining.child.kill('SIGTERM'))
  const joining = join([`127.0.0.1:${server.place.port}`, '--token', secret, ...flags])
  assert.deepEqual(await joining.ended, [130, null])
})
