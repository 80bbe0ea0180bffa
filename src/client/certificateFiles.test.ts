/** A client certificate in files that change while it is used. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { testCertificates } from '#testing/testCertificates'
import { resolveKubeconfig } from './kubeconfig.ts'

const minutes = 60_000

test('AUN-02 a client certificate follows its files, as a pair', async () => {
  const [first, second, third] = [await testCertificates('CN=one'), await testCertificates('CN=two'), await testCertificates('CN=three')]
  const clock = new VirtualClock()
  const files: Record<string, string | undefined> = { 'client.crt': first.cert, 'client.key': first.key }
  let reads = 0
  const readFile = async (path: string) => {
    reads++
    const text = files[path]
    if (text === undefined) throw new Error(`no ${path}`)
    return Buffer.from(text)
  }
  const config = {
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://x:1' } }],
    users: [{ name: 'u', user: { 'client-certificate': 'client.crt', 'client-key': 'client.key' } }],
  }
  const { credentials } = (await resolveKubeconfig(config, { clock, readFile })).transport
  assert.ok(credentials)
  const used = await credentials.get()
  assert.deepEqual(used, first)
  Object.assign(files, { 'client.crt': second.cert })
  assert.equal(await credentials.get(), used, 'files are not read with each call')
  await clock.advance(5 * minutes)
  assert.equal(await credentials.get(), used, 'the new certificate has not its key yet')
  Object.assign(files, { 'client.key': second.key })
  await clock.advance(5 * minutes)
  assert.deepEqual(await credentials.get(), second)
  reads = 0
  await Promise.all([credentials.refresh(used), credentials.get()])
  assert.equal(reads, 0, 'a certificate that is not used any more may well be refused')
  Object.assign(files, { 'client.crt': third.cert, 'client.key': third.key })
  await credentials.refresh(await credentials.get())
  assert.deepEqual(await credentials.get(), third, 'read at once when the server refuses it')
  Object.assign(files, { 'client.key': undefined })
  await clock.advance(5 * minutes)
  assert.deepEqual(await credentials.get(), third, 'the last pair holds while a file is gone')
})

test('AUN-02 a certificate that is not in files only stays as it is', async () => {
  const { cert, key } = await testCertificates('CN=one')
  const readFile = async () => Buffer.from(cert)
  const user = { 'client-certificate': 'client.crt', 'client-key-data': Buffer.from(key).toString('base64') }
  const config = {
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://x:1' } }],
  }
  const { transport } = await resolveKubeconfig({ ...config, users: [{ name: 'u', user }] }, { clock: new VirtualClock(), readFile })
  assert.deepEqual([transport.credentials, String(transport.tls?.cert)], [undefined, cert])
})
