/** Certificate requests from asking to the certificate, bootstrap tokens and token secrets; each controller with its own rights. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, before, test } from 'node:test'
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { isStatus } from '#api/machinery/status'
import { secretTokens } from '#apiserver/authn/secretTokens'
import { derTag } from '#base/der'
import { encodeDer } from '#base/derEncoding'
import { userOfCertificate } from '#base/distinguishedName'
import { certificateSigningRequests, clusterRoleBindings, configMaps, namespaces, secrets, serviceAccounts } from '#client/builtIn'
import { detachedSignature } from '#controllers/bootstrap/signer'
import { createAuthority, type KeyPair } from '#main/pki/certificates'
import { bmp, craftedExtension, craftedName, craftedRequest } from '#testing/craftedCertificates'
import { eventually, startTestCluster, type TestCluster, testServiceAccountKey } from './cluster.ts'

let cluster: TestCluster
let authority: KeyPair
before(async () => {
  authority = await createAuthority('test-ca', Date.now(), 30)
  cluster = await startTestCluster({
    controllers: ['*', 'bootstrapsigner', 'tokencleaner'],
    rootCa: authority.cert,
    clusterSigning: { authorityOf: () => authority },
    serviceAccountToken: secretTokens(testServiceAccountKey()),
  })
})
after(() => cluster.close())

async function requestFor(name: string, hosts: readonly string[] = []): Promise<string> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const extensions = hosts.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(hosts.map((value) => ({ type: 'dns' as const, value })))]
  const request = await x509.Pkcs10CertificateRequestGenerator.create({ name, keys, signingAlgorithm: algorithm, extensions })
  return Buffer.from(request.toString('pem')).toString('base64')
}

const requests = () => cluster.client.of(certificateSigningRequests)
const approve = async (name: string) => {
  const object = await requests().get({ name })
  const conditions = [{ type: 'Approved', status: 'True', reason: 'Test', message: '' }]
  await requests().updateSubresource({ name }, 'approval', { ...object, status: { ...object.status, conditions } })
}
const certificateOf = async (name: string) => {
  const found = await eventually(async () => (await requests().get({ name })).status?.certificate ?? false)
  return new X509Certificate(Buffer.from(found, 'base64'))
}

test('CTL-19 an approved request is signed by the authority, for as long as it asked', async () => {
  const request = await requestFor('CN=jane, O=team')
  const spec = { request, signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'], expirationSeconds: 3600 }
  await requests().create({ metadata: { name: 'jane' }, spec })
  assert.equal((await requests().get({ name: 'jane' })).status?.certificate, undefined)
  await approve('jane')
  const certificate = await certificateOf('jane')
  assert.equal(certificate.verify(new X509Certificate(authority.cert).publicKey), true)
  assert.deepEqual([certificate.subject, certificate.ca, certificate.keyUsage], ['O=team\nCN=jane', false, ['1.3.6.1.5.5.7.3.2']])
  // Five minutes earlier than now, for clocks that differ.
  assert.equal(Date.parse(certificate.validTo) - Date.parse(certificate.validFrom), 65 * 60_000)
})

const uidType = '1.3.6.1.4.1.57683.2'
const directoryName = encodeDer(0xa4, craftedName([[['O', 'system:masters']]]))
const alternativeNames = (...names: readonly Uint8Array[]) => craftedExtension('2.5.29.17', encodeDer(derTag.sequence, ...names), true)
const toBase64 = (pem: string) => Buffer.from(pem).toString('base64')

test('CTL-19 a certificate has what was checked of its request, and nothing else', async () => {
  const authorityForAll = craftedExtension('2.5.29.19', encodeDer(derTag.sequence, encodeDer(0x01, Uint8Array.of(0xff))), true)
  const names = alternativeNames(encodeDer(0x82, Buffer.from('a.test')), directoryName, encodeDer(0x87, Uint8Array.of(192, 0, 2, 1)))
  const pem = craftedRequest(
    [
      [[uidType, 'another user']],
      [
        ['CN', 'jane'],
        ['O', 'a'],
      ],
      [['O', bmp('b')]],
      [['1.2.3.4', 'x']],
    ],
    { extensions: [names, authorityForAll] },
  )
  const spec = { request: toBase64(pem), signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] }
  await requests().create({ metadata: { name: 'crafted' }, spec })
  await approve('crafted')
  const certificate = await certificateOf('crafted')
  assert.deepEqual([certificate.subject, certificate.subjectAltName, certificate.ca], ['O=a + O=b\nCN=jane', 'DNS:a.test, IP Address:192.0.2.1', false])
  assert.deepEqual(userOfCertificate(certificate.raw), { name: 'jane', uid: undefined, groups: ['a', 'b'] })
})

test('CTL-19 the signer refuses a request for system:masters when the admission plugin is off', async () => {
  const spec = {
    request: toBase64(craftedRequest([[['O', bmp('system:masters')]], [['CN', 'u']]])),
    signerName: 'kubernetes.io/kube-apiserver-client',
    usages: ['client auth'],
  }
  await requests().create({ metadata: { name: 'masters' }, spec })
  await approve('masters')
  const condition = await eventually(async () => (await requests().get({ name: 'masters' })).status?.conditions?.find(({ type }) => type === 'Failed') ?? false)
  assert.deepEqual(
    [condition.reason, condition.message],
    ['SignerValidationFailure', 'use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed'],
  )
  assert.equal((await requests().get({ name: 'masters' })).status?.certificate, undefined)
})

test('CTL-19 a request that its signer does not accept gets the condition Failed with the reason', async () => {
  const request = await requestFor('CN=system:node:a, O=system:nodes')
  const spec = { request, signerName: 'kubernetes.io/kubelet-serving', usages: ['server auth', 'digital signature'] }
  await requests().create({ metadata: { name: 'nameless' }, spec })
  await approve('nameless')
  const condition = await eventually(
    async () => (await requests().get({ name: 'nameless' })).status?.conditions?.find(({ type }) => type === 'Failed') ?? false,
  )
  assert.deepEqual([condition.reason, condition.message], ['SignerValidationFailure', 'DNS or IP subjectAltName is required'])
  await requests().create({ metadata: { name: 'named' }, spec: { ...spec, request: await requestFor('CN=system:node:a, O=system:nodes', ['a.test']) } })
  await approve('named')
  assert.equal((await certificateOf('named')).subjectAltName, 'DNS:a.test')
})

test("CTL-19 a kubelet's client certificate is approved automatically when it has the permission", async () => {
  const spec = {
    request: await requestFor('CN=system:node:b, O=system:nodes'),
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    usages: ['client auth', 'digital signature'],
  }
  const groups = ['system:bootstrappers', 'system:authenticated']
  const subjects = [{ kind: 'Group', name: 'system:bootstrappers', apiGroup: 'rbac.authorization.k8s.io' }]
  const bind = (name: string, role: string) =>
    cluster.client
      .of(clusterRoleBindings)
      .create({ metadata: { name }, subjects, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role } })
  await bind('may-ask', 'system:node-bootstrapper')
  const joining = cluster.api.clientAs({ name: 'system:bootstrap:abcdef', groups })
  await eventually(() => joining.of(certificateSigningRequests).create({ metadata: { name: 'node-b' }, spec }))
  // The permission may be granted after the request.
  await bind('may-have', 'system:certificates.k8s.io:certificatesigningrequests:nodeclient')
  assert.equal((await certificateOf('node-b')).subject, 'O=system:nodes\nCN=system:node:b')
  const { status } = await requests().get({ name: 'node-b' })
  assert.deepEqual(
    status?.conditions?.map(({ type, reason, message }) => [type, reason, message]),
    [['Approved', 'AutoApproved', 'Auto approving kubelet client certificate after SubjectAccessReview.']],
  )
})

test('CTL-19 cluster-info carries a signature per bootstrap token, and tokens end', async () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const token = (id: string, expiration?: string) => ({
    metadata: { namespace: 'kube-system', name: `bootstrap-token-${id}` },
    type: 'bootstrap.kubernetes.io/token',
    data: {
      'token-id': base64(id),
      'token-secret': base64('0123456789abcdef'),
      'usage-bootstrap-signing': base64('true'),
      ...(expiration ? { expiration: base64(expiration) } : {}),
    },
  })
  const info = async () => (await cluster.client.of(configMaps).get({ namespace: 'kube-public', name: 'cluster-info' })).data ?? {}
  await cluster.client.of(configMaps).create({ metadata: { namespace: 'kube-public', name: 'cluster-info' }, data: { kubeconfig: 'where' } })
  await cluster.client.of(secrets).create(token('aaaaaa'))
  const signature = detachedSignature('where', 'aaaaaa', '0123456789abcdef')
  await eventually(async () => (await info())['jws-kubeconfig-aaaaaa'] === signature)
  await cluster.client.of(secrets).create(token('bbbbbb', '2020-01-01T00:00:00Z'))
  await eventually(() => gone(() => cluster.client.of(secrets).get({ namespace: 'kube-system', name: 'bootstrap-token-bbbbbb' })))
  await cluster.client.of(secrets).delete({ namespace: 'kube-system', name: 'bootstrap-token-aaaaaa' })
  await eventually(async () => Object.keys(await info()).length === 1)
})

test('CTL-13 a token secret is filled, and goes with its account', async () => {
  const namespace = 'tokens'
  const annotations = { 'kubernetes.io/service-account.name': 'robot' }
  await cluster.client.of(namespaces).create({ metadata: { name: namespace }, spec: {} })
  const { metadata } = await cluster.client.of(serviceAccounts).create({ metadata: { namespace, name: 'robot' } })
  const get = () => cluster.client.of(secrets).get({ namespace, name: 'robot-token' })
  await cluster.client.of(secrets).create({ metadata: { namespace, name: 'robot-token', annotations }, type: 'kubernetes.io/service-account-token' })
  const filled = await eventually(async () => {
    const secret = await get()
    return secret.data?.token !== undefined && secret
  })
  const text = (key: string) => Buffer.from(filled.data?.[key] ?? '', 'base64').toString()
  assert.deepEqual([text('namespace'), text('ca.crt')], [namespace, authority.cert])
  assert.equal(filled.metadata.annotations?.['kubernetes.io/service-account.uid'], metadata.uid)
  const claims = JSON.parse(Buffer.from(text('token').split('.')[1] ?? '', 'base64url').toString())
  assert.deepEqual(claims, {
    iss: 'kubernetes/serviceaccount',
    'kubernetes.io/serviceaccount/namespace': namespace,
    'kubernetes.io/serviceaccount/secret.name': 'robot-token',
    'kubernetes.io/serviceaccount/service-account.name': 'robot',
    'kubernetes.io/serviceaccount/service-account.uid': metadata.uid,
    sub: 'system:serviceaccount:tokens:robot',
  })
  await cluster.client.of(serviceAccounts).delete({ namespace, name: 'robot' })
  await eventually(() => gone(get))
})

function gone(get: () => Promise<unknown>): Promise<boolean> {
  return get().then(
    () => false,
    (error: unknown) => isStatus(error, 'NotFound'),
  )
}
