/**
 * One certificate means the same user at the API server's port and at a kubelet's, whatever its subject holds, and certificate requests with such
 * subjects are refused or read alike (AUN-02, KUB-17, EXP-04). Attacks over TLS with subjects that no library writes.
 */
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { Agent, request as httpsRequest } from 'node:https'
import { after, before, describe, test } from 'node:test'
import type { SubjectAccessReview } from '#api/gen/types/authorization.v1'
import { derTag } from '#base/der'
import { encodeDer } from '#base/derEncoding'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import type { Client } from '#client/client'
import { kubeletConfig } from '#kubelet/core/config'
import type { KubeletView } from '#kubelet/core/kubeletView'
import { apiAuth, authDefaults } from '#kubelet/server/auth'
import { createKubeletServer } from '#kubelet/server/kubeletServer'
import { createAuthority, issueCertificate, type KeyPair } from '#main/pki/certificates'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import {
  bmp,
  type CraftedAttributes,
  type CraftedRequestOptions,
  craftedCertificate,
  craftedExtension,
  craftedKey,
  craftedRequest,
  universal,
} from '#testing/craftedCertificates'
import { httpsCall } from '../../support/httpsCall.ts'
import { openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const ssl = openSsl()
const stop = new AbortController()
const kubeletClock = new VirtualClock(Date.now())
let authority: KeyPair
let api: TestApiServer
let server: TestListener
let kubelet: { readonly url: string; readonly ca: string }
let running: Promise<void>
/** What the kubelet asked about last. */
let asked: SubjectAccessReview['spec'] | undefined

before(async () => {
  authority = await createAuthority('clients', Date.now(), 2)
  const serving = await issueCertificate(authority, { commonName: 'node', usage: 'server', hosts: ['127.0.0.1'], validDays: 1 }, Date.now())
  api = await startServerWithFlags([`--client-ca-file=${ssl.file('clients.pem', authority.cert)}`, '--authorization-mode=AlwaysAllow'])
  server = await api.listen()
  const create = async (review: SubjectAccessReview) => {
    asked = review.spec
    return { status: { allowed: true } }
  }
  const view = {
    config: kubeletConfig({ nodeName: 'n1' }),
    pods: () => [],
    podStatus: () => undefined,
    context: () => undefined,
    latestLoopEntryMs: () => undefined,
  } as unknown as KubeletView
  const auth = apiAuth({ of: () => ({ create }) } as unknown as Client, kubeletClock, 'n1', { ...authDefaults, anonymous: true, tokens: false })
  const port = createKubeletServer(
    { view, auth, clock: kubeletClock, log: noLog },
    { address: '127.0.0.1', port: 0, cert: serving.cert, key: serving.key, clientCa: authority.cert },
  )
  running = port.run(stop.signal)
  kubelet = { url: `https://127.0.0.1:${await port.listening}`, ca: authority.cert }
})
after(async () => {
  stop.abort()
  await running
  await api.close()
  ssl.remove()
})

interface Who {
  readonly name: string | undefined
  readonly uid: string | undefined
  readonly groups: readonly string[] | undefined
}

async function whoAtApiServer(certificate: KeyPair): Promise<Who | number> {
  const answer = await httpsCall(server, '/apis/authentication.k8s.io/v1/selfsubjectreviews', { ...certificate, body: {} })
  if (answer.status !== 201) return answer.status
  const { username, uid, groups } = answer.json.status.userInfo
  return { name: username, uid, groups }
}

async function whoAtKubelet(certificate: KeyPair): Promise<Who | number> {
  asked = undefined
  const { status } = await httpsCall(kubelet, '/healthz', certificate)
  if (status !== 200) return status
  const { user, uid, groups } = asked ?? ({} as Partial<SubjectAccessReview['spec']>)
  return { name: user, uid, groups }
}

const client = () => ({ ...authority, privateKey: createPrivateKey(authority.key) })
const authenticated = 'system:authenticated'
const user = (name: string, ...groups: string[]): Who => ({ name, uid: undefined, groups: [...groups, authenticated] })
const uidType = '1.3.6.1.4.1.57683.2'

const subjects: readonly { name: string; subject: readonly CraftedAttributes[]; want: Who | number }[] = [
  { name: 'two common names', subject: [[['CN', 'alice']], [['CN', 'system:node:x']]], want: user('system:node:x') },
  {
    name: 'two common names, the node first',
    subject: [[['CN', 'system:node:x']], [['O', 'system:nodes']], [['CN', 'alice']]],
    want: user('alice', 'system:nodes'),
  },
  {
    name: 'two common names side by side',
    subject: [
      [
        ['CN', 'a'],
        ['CN', 'b'],
      ],
    ],
    want: user('b'),
  },
  {
    name: 'organizations apart and side by side',
    subject: [
      [
        ['O', 'a'],
        ['CN', 'u'],
        ['O', 'b'],
      ],
      [['O', 'c']],
    ],
    want: user('u', 'a', 'b', 'c'),
  },
  { name: 'a BMPString', subject: [[['CN', bmp('böb')]], [['O', bmp('dev')]]], want: user('böb', 'dev') },
  { name: 'a T61String', subject: [[['CN', [derTag.t61String, Buffer.from('b\xf6b', 'latin1')]]]], want: user('böb') },
  { name: 'a group as UniversalString', subject: [[['CN', 'u']], [['O', universal('system:masters')]]], want: 401 },
  { name: 'a NUL in the middle', subject: [[['CN', 'system:admin\0x']], [['O', 'system:masters\0']]], want: user('system:admin\0x', 'system:masters\0') },
  { name: 'a UID', subject: [[['CN', 'u']], [[uidType, '7']]], want: { ...user('u'), uid: '7' } },
  { name: 'two UIDs', subject: [[['CN', 'u']], [[uidType, '7']], [[uidType, '8']]], want: 401 },
]
for (const { name, subject, want } of subjects) {
  test(`AUN-02 the API server and the kubelet see the same user in a certificate with ${name}`, async () => {
    const certificate = craftedCertificate(client(), subject)
    assert.deepEqual({ server: await whoAtApiServer(certificate), kubelet: await whoAtKubelet(certificate) }, { server: want, kubelet: want })
  })
}

test('KUB-17 the kubelet refuses a certificate of a stranger although it allows anonymous requests', async () => {
  const stranger = await createAuthority('clients', Date.now(), 1)
  const certificate = craftedCertificate({ ...stranger, privateKey: createPrivateKey(stranger.key) }, [[['CN', 'u']]])
  assert.equal(await whoAtKubelet(certificate), 401)
  const { status } = await httpsCall(kubelet, '/healthz')
  assert.deepEqual([status, asked?.user], [200, 'system:anonymous'])
})

test('KUB-17 the kubelet refuses a request on a connection whose certificate has expired meanwhile', async () => {
  const certificate = craftedCertificate(client(), [[['CN', 'u']]])
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: kubelet.ca, ...certificate })
  const status = () =>
    new Promise((resolve, reject) => {
      const sent = httpsRequest(`${kubelet.url}/healthz`, { agent }, (response) =>
        response.resume().on('end', () => resolve([response.statusCode, sent.reusedSocket])),
      )
      sent.on('error', reject).end()
    })
  try {
    assert.deepEqual(await status(), [200, false])
    await kubeletClock.advance(2 * 3_600_000)
    assert.deepEqual(await status(), [401, true])
  } finally {
    agent.destroy()
  }
})

describe('EXP-04 certificate requests', () => {
  const apiServerClient = 'kubernetes.io/kube-apiserver-client'
  let made = 0
  const post = async (pem: string, signerName = apiServerClient) => {
    const spec = { request: Buffer.from(pem).toString('base64'), signerName, usages: ['client auth'] }
    const body = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name: `r${made++}` }, spec }
    const admin = craftedCertificate(client(), [[['CN', 'admin']], [['O', 'system:masters']]])
    const { status, json } = await httpsCall(server, '/apis/certificates.k8s.io/v1/certificatesigningrequests', { ...admin, body })
    return `${status} ${json.message ?? ''}`
  }
  const masters = 'system:masters'
  const encodings: readonly (readonly [string, CraftedAttributes])[] = [
    ['UTF8String', [['O', masters]]],
    ['IA5String', [['O', [derTag.ia5String, Buffer.from(masters)]]]],
    ['PrintableString', [['O', [derTag.printableString, Buffer.from(masters)]]]],
    ['BMPString', [['O', bmp(masters)]]],
    ['T61String', [['O', [derTag.t61String, Buffer.from(masters)]]]],
    [
      'BMPString in one relative name with the common name',
      [
        ['CN', 'u'],
        ['O', bmp(masters)],
      ],
    ],
  ]
  for (const [name, attributes] of encodings)
    test(`EXP-04 a request for system:masters as ${name} is refused`, async () =>
      assert.match(
        await post(craftedRequest([attributes, [['CN', 'u']]])),
        /^403 .*signer with system:masters group is not allowed$|^422 .*2 common names, only one is allowed/,
      ))

  const signers = [apiServerClient, 'kubernetes.io/kube-apiserver-client-kubelet', 'kubernetes.io/kubelet-serving']
  for (const signer of signers)
    test(`EXP-04 ${signer} takes no request with two common names`, async () => {
      const pem = craftedRequest([[['O', 'system:nodes']], [['CN', 'alice']], [['CN', 'system:node:x']]])
      assert.match(await post(pem, signer), /^422 .*spec\.request: Invalid value: .*: subject has 2 common names, only one is allowed$/)
    })

  test('EXP-04 a signer that is not of the cluster may get a request with two common names', async () =>
    assert.match(await post(craftedRequest([[['CN', 'alice']], [['CN', 'bob']]]), 'example.com/any'), /^201/))

  test('EXP-04 a request with a group of an unsupported string type is refused', async () =>
    assert.match(await post(craftedRequest([[['CN', 'u']], [['O', universal(masters)]]])), /^422 .*organization of an unsupported string type$/))

  const rsaKey = (bits: number) => {
    const modulus = Buffer.alloc(bits / 8 + 1, 0xff)
    modulus[0] = 0
    const key = encodeDer(derTag.sequence, encodeDer(derTag.integer, modulus), encodeDer(derTag.integer, Buffer.of(1, 0, 1)))
    const rsaEncryption = encodeDer(derTag.sequence, Buffer.from('06092a864886f70d0101010500', 'hex'))
    return encodeDer(derTag.sequence, rsaEncryption, encodeDer(derTag.bitString, Buffer.of(0), key))
  }
  const names = craftedExtension('2.5.29.17', encodeDer(derTag.sequence, encodeDer(0x82, Buffer.from('a.test'))))
  const forged: readonly (readonly [string, CraftedRequestOptions, RegExp])[] = [
    ['another key signed it', { signWith: craftedKey().privateKey }, /^422 .*x509: ECDSA verification failure$/],
    [
      'its key is of another kind than its signature',
      { publicKeyInfo: rsaKey(2048) },
      /^422 .*signature algorithm specifies a key of type ec, but have public key of type rsa$/,
    ],
    ['its key has 8 bits', { publicKeyInfo: rsaKey(8) }, /^422 /],
    ['its key has 100,000 bits', { publicKeyInfo: rsaKey(100_000) }, /^422 .*x509: failed to parse public key$/],
    ['it asks for an extension twice', { extensions: [names, names] }, /^422 .*x509: certificate request contains duplicate requested extensions$/],
  ]
  for (const [name, options, want] of forged)
    test(`EXP-04 a request is refused when ${name}`, async () => assert.match(await post(craftedRequest([[['CN', 'u']]], options)), want))

  test('EXP-04 a request of many beginnings of PEM blocks takes no longer than its length', async () => {
    const started = performance.now()
    assert.match(await post('-----BEGIN CERTIFICATE REQUEST-----\n'.repeat(30_000)), /^422 .*PEM block type must be CERTIFICATE REQUEST$/)
    assert.ok(performance.now() - started < 2000)
  })
})
