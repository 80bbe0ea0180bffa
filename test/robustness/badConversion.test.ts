/**
 * Conversion webhooks that misbehave: they do not answer, answer without end, or answer nonsense. Requests that need the conversion fail, other
 * requests are served meanwhile, and the stored objects do not change.
 */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { definition, establish, group, plain, version } from '../integration/crd/support.ts'

const path = (of: string, name = '') => `/apis/${group}/${of}/namespaces/default/things${name && `/${name}`}`
const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
const mebibyte = Buffer.alloc(1024 * 1024, 0x20)

let api: TestApiServer
let hook: Server
let answer: (response: ServerResponse) => void = () => {}
/** Responses that the webhook holds without an answer. */
let silent: ServerResponse[] = []

before(async () => {
  api = await startTestApiServer()
  const { cert, key } = await testCertificates('CN=hook', ['hook.default.svc'])
  hook = createServer({ cert, key }, (request, response) => {
    request.resume()
    request.on('end', () => answer(response))
  })
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve))
  const { port } = hook.address() as AddressInfo
  const clientConfig = { url: `https://127.0.0.1:${port}/convert`, caBundle: Buffer.from(cert).toString('base64') }
  const conversion = { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig } }
  await establish(api.client, definition('things', 'Thing', [version('v1', schema), version('v2', schema, { storage: false })], { conversion }))
  await plain(api.client).request('POST', path('v1'), { apiVersion: `${group}/v1`, kind: 'Thing', metadata: { name: 'a' }, spec: { size: 1 } })
})
after(async () => {
  await api.close()
  hook.closeAllConnections()
  await new Promise((resolve) => hook.close(resolve))
})

/** Writes for as long as it is read. */
function pour(response: ServerResponse, mebibytes: number): void {
  let left = mebibytes
  const more = () => {
    while (left-- > 0) if (!response.write(mebibyte)) return
    response.end()
  }
  response.on('drain', more)
  more()
}

const attempts: readonly { readonly name: string; readonly answers: (response: ServerResponse) => void; readonly want: RegExp }[] = [
  { name: 'no JSON', answers: (response) => response.end('<html>'), want: /json parse error/ },
  { name: 'an empty body', answers: (response) => response.end(), want: /json parse error/ },
  { name: 'null', answers: (response) => response.end('null'), want: /no response provided/ },
  { name: 'half a body', answers: (response) => response.write('{"apiVersion":', () => response.destroy()), want: /conversion webhook .* failed/ },
  { name: 'a failure', answers: (response) => response.writeHead(500).end('broken'), want: /broken/ },
  { name: 'a redirect', answers: (response) => response.writeHead(302, { location: 'https://127.0.0.1:1/' }).end(), want: /conversion webhook .* failed/ },
  { name: 'deeply nested lists', answers: (response) => response.end('['.repeat(100_000)), want: /json parse error/ },
  { name: 'a hundred mebibytes', answers: (response) => pour(response, 100), want: /too large/ },
]
for (const { name, answers, want } of attempts) {
  test(`CRD-04 a conversion webhook that answers ${name} fails the request`, async () => {
    answer = answers
    const client = plain(api.client)
    for (const asked of [path('v2', 'a'), path('v2')]) await assert.rejects(client.request('GET', asked), want)
    assert.deepEqual((await client.request('GET', path('v1', 'a'))).spec, { size: 1 })
  })
}

test('CRD-04 while a conversion webhook does not answer, other requests are served, and a cancelled request stops waiting', async () => {
  silent = []
  answer = (response) => {
    silent.push(response)
  }
  const going = new AbortController()
  const waiting = Array.from({ length: 20 }, () =>
    api.client.transport.request({ method: 'GET', path: path('v2', 'a') }, going.signal).then(
      () => 'answered',
      () => 'ended',
    ),
  )
  const client = plain(api.client)
  while (silent.length === 0) {
    assert.deepEqual((await client.request('GET', path('v1', 'a'))).spec, { size: 1 })
    await turn()
  }
  assert.equal((await client.request('PATCH', path('v1', 'a'), { spec: { size: 2 } }, { contentType: 'application/merge-patch+json' })).spec.size, 2)
  const closed = Promise.all(silent.map((response) => new Promise((resolve) => response.on('close', resolve))))
  going.abort()
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['ended']))
  await closed
})
