import assert from 'node:assert/strict'
import { once } from 'node:events'
import { before, test } from 'node:test'
import { connect } from 'node:tls'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import type { KubeletView } from '#kubelet/core/kubeletView'
import { createKubeletServer, type KubeletServerTls } from '#kubelet/server/kubeletServer'
import { createAuthority, issueCertificate, type KeyPair } from '#main/pki/certificates'

let ca: KeyPair
let serving: KeyPair

before(async () => {
  ca = await createAuthority('test', Date.now(), 1)
  serving = await issueCertificate(ca, { commonName: 'node', usage: 'server', hosts: ['127.0.0.1'], validDays: 1 }, Date.now())
})

/** What a client that speaks no more than TLS 1.2, or perhaps only one suite or curve, gets: 'version suite', or 'refused'. */
async function spoken(
  rules: Pick<KubeletServerTls, 'minVersion' | 'ciphers' | 'curves'>,
  offer: { readonly maxVersion: 'TLSv1.2' | 'TLSv1.3'; readonly ciphers?: string; readonly ecdhCurve?: string },
) {
  const auth = { anonymous: false, authenticateToken: async () => undefined, authorize: async () => false }
  const server = createKubeletServer(
    { view: {} as KubeletView, auth, clock: new VirtualClock(), log: noLog },
    { address: '127.0.0.1', port: 0, cert: serving.cert, key: serving.key, ...rules },
  )
  const stop = new AbortController()
  const running = server.run(stop.signal)
  const socket = connect({ host: '127.0.0.1', port: await server.listening, ca: ca.cert, ...offer })
  try {
    await once(socket, 'secureConnect')
    return `${socket.getProtocol()} ${socket.getCipher().name}`
  } catch {
    return 'refused'
  } finally {
    socket.destroy()
    stop.abort()
    await running
  }
}

const aes = ['TLS_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256']
const cases = [
  { name: 'the oldest version', rules: { minVersion: 'TLSv1.3' }, offer: { maxVersion: 'TLSv1.2' }, want: /^refused$/ },
  { name: 'a newer client than the oldest version', rules: { minVersion: 'TLSv1.3' }, offer: { maxVersion: 'TLSv1.3' }, want: /^TLSv1\.3 / },
  { name: 'nothing said', rules: {}, offer: { maxVersion: 'TLSv1.2' }, want: /^TLSv1\.2 / },
  { name: 'a suite that is named', rules: { ciphers: aes }, offer: { maxVersion: 'TLSv1.2' }, want: /^TLSv1\.2 ECDHE-(RSA|ECDSA)-AES128-GCM-SHA256$/ },
  {
    name: 'a suite that is not',
    rules: { ciphers: aes },
    offer: { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES256-GCM-SHA384' },
    want: /^refused$/,
  },
  { name: 'a curve that is named', rules: { curves: ['X25519', 'P-384'] }, offer: { maxVersion: 'TLSv1.3', ecdhCurve: 'P-384' }, want: /^TLSv1\.3 / },
  { name: 'a curve that is not', rules: { curves: ['X25519', 'P-384'] }, offer: { maxVersion: 'TLSv1.3', ecdhCurve: 'P-256' }, want: /^refused$/ },
] as const
for (const { name, rules, offer, want } of cases)
  test(`KUB-17 the kubelet's port keeps to its TLS settings: ${name}`, async () => assert.match(await spoken(rules, offer), want))
