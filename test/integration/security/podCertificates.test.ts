/** PodCertificateRequests and ClusterTrustBundles where they are turned on: what a node may ask for, what a signer may answer, what is refused. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { PodCertificateRequest } from '#api/gen/types/certificates.v1beta1'
import type { UserInfo } from '#apiserver/core/request'
import type { CertificateAuthority } from '#controllers/certificates/x509'
import { newKey } from '#kubelet/volumes/podCertificateKeys'
import { createAuthority } from '#main/pki/certificates'
import type { TestApiServer } from '#testing/apiServer'
import { issuedStatus } from '../../support/podCertificates.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'
import { type Any, plain } from '../crd/support.ts'

const root = '/apis/certificates.k8s.io/v1beta1'
const inDefault = `${root}/namespaces/default/podcertificaterequests`
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const user = (name: string, ...groups: string[]): UserInfo => ({ name, groups: [...groups, 'system:authenticated'] })
const admin = user('admin', 'system:masters')
const nodeOne = user('system:node:one', 'system:nodes')
const nodeTwo = user('system:node:two', 'system:nodes')
const signer = user('signer')

const gates = '--feature-gates=PodCertificateRequest=true,ClusterTrustBundle=true'
const flags = [gates, '--runtime-config=certificates.k8s.io/v1beta1=true', '--authorization-mode=Node,RBAC', '--enable-admission-plugins=NodeRestriction']

const pemOf = (bytes: Buffer) => `-----BEGIN CERTIFICATE-----\n${bytes.toString('base64')}\n-----END CERTIFICATE-----\n`

let api: TestApiServer
let authority: CertificateAuthority
let spec: PodCertificateRequest['spec']
const as = (who: UserInfo) => plain(api.clientAs(who)).request
const refused = (work: Promise<unknown>) =>
  work.then(
    () => 'allowed',
    (error) => `${error.code} ${error.message}`,
  )
const create = (who: UserInfo, changes: Partial<PodCertificateRequest['spec']> = {}) =>
  as(who)('POST', inDefault, { metadata: { generateName: 'req-' }, spec: { ...spec, ...changes } })
const setStatus = async (who: UserInfo, { metadata }: Any, status: unknown) =>
  as(who)('PATCH', `${inDefault}/${metadata.name}/status`, { status }, { contentType: 'application/merge-patch+json' })

before(async () => {
  api = await startServerWithFlags(flags)
  authority = await createAuthority('pods', Date.now(), 30)
  const account = await as(admin)('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } })
  const node = await as(admin)('POST', '/api/v1/nodes', { metadata: { name: 'one' } })
  await as(admin)('POST', '/api/v1/nodes', { metadata: { name: 'two' } })
  const pod = { metadata: { name: 'p' }, spec: { nodeName: 'one', containers: [{ name: 'c', image: 'i' }] } }
  const { metadata } = await as(admin)('POST', '/api/v1/namespaces/default/pods', pod)
  spec = {
    signerName: 'example.com/pods',
    podName: 'p',
    podUID: metadata.uid,
    serviceAccountName: 'default',
    serviceAccountUID: account.metadata.uid,
    nodeName: 'one',
    nodeUID: node.metadata.uid,
    stubPKCS10Request: (await newKey('ED25519')).request,
  }
  const rules = [
    { apiGroups: ['certificates.k8s.io'], resources: ['podcertificaterequests', 'podcertificaterequests/status'], verbs: ['get', 'list', 'patch'] },
    { apiGroups: ['certificates.k8s.io'], resources: ['signers'], verbs: ['sign'], resourceNames: ['example.com/pods'] },
  ]
  await as(admin)('POST', `${rbac}/clusterroles`, { metadata: { name: 'signer' }, rules })
  const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'signer' }]
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'signer' }
  await as(admin)('POST', `${rbac}/clusterrolebindings`, { metadata: { name: 'signer' }, subjects, roleRef })
})
after(() => api.close())

test('API-10 field selectors of requests know the signer, the pod and the node, and refuse the namespace', async () => {
  const made = await create(admin, { signerName: 'example.com/selected' })
  const select = (text: string) => as(admin)('GET', `${root}/podcertificaterequests?fieldSelector=${encodeURIComponent(text)}`)
  const known = `spec.signerName=example.com/selected,spec.podName=p,spec.nodeName=one,metadata.name=${made.metadata.name}`
  assert.equal((await select(known)).items.length, 1)
  assert.equal((await select('spec.signerName=example.com/other')).items.length, 0)
  assert.equal(await refused(select('metadata.namespace=default')), '400 field label not supported: metadata.namespace')
  await as(admin)('DELETE', `${inDefault}/${made.metadata.name}`)
})

test('AUZ-04 a node requests certificates for its own pods, reads its own requests, and writes no status', async () => {
  const made = await create(nodeOne)
  assert.deepEqual([made.spec.maxExpirationSeconds, made.status], [86_400, {}])
  const path = `${inDefault}/${made.metadata.name}`
  assert.equal((await as(nodeOne)('GET', path)).metadata.name, made.metadata.name)
  assert.match(await refused(as(nodeTwo)('GET', path)), /^403 .*no relationship found between node 'two' and this object$/)
  assert.equal((await as(nodeOne)('GET', `${root}/podcertificaterequests?fieldSelector=spec.nodeName%3Done`)).items.length, 1)
  const unselected = /^403 .*can only list\/watch podcertificaterequests with nodeName field selector$/
  assert.match(await refused(as(nodeOne)('GET', `${root}/podcertificaterequests`)), unselected)
  assert.match(await refused(as(nodeOne)('DELETE', path)), /^403 .*nodes may not delete podcertificaterequests$/)
  assert.match(await refused(setStatus(nodeOne, made, {})), /^403 .*nodes may not access the status subresource of PodCertificateRequests$/)
})

test('AUZ-04 a node requests no certificate in the name of another node, pod or service account', async () => {
  const cases: readonly (readonly [who: UserInfo, changes: Partial<PodCertificateRequest['spec']>, want: RegExp])[] = [
    [nodeTwo, {}, /^403 .*PodCertificateRequest\.Spec\.NodeName="one", which is not the requesting node "two"$/],
    [nodeOne, { nodeUID: 'x' }, /^500 PodCertificateRequest for pod "default\/p" names node UID "x", inconsistent with the running node \(".+"\)$/],
    [nodeOne, { podName: 'q' }, /^500 while retrieving pod "default\/q" named in the PodCertificateRequest: pod "q" not found$/],
    [nodeOne, { podUID: 'x' }, /^500 .* contains pod UID \("x"\) which differs from running pod ".+"$/],
    [nodeOne, { serviceAccountName: 'other' }, /^403 .*contains serviceAccountName \("other"\) that differs from running pod \("default"\)$/],
    [nodeOne, { serviceAccountUID: 'x' }, /^500 .* names service account UID "x", which differs from the running service account \(".+"\)$/],
  ]
  for (const [who, changes, want] of cases) assert.match(await refused(create(who, changes)), want)
  const there = await as(admin)('GET', '/api/v1/nodes/two')
  const elsewhere = await refused(create(nodeTwo, { nodeName: 'two', nodeUID: there.metadata.uid }))
  assert.match(elsewhere, /^403 .*pod "default\/p" is not running on node "two" named in the PodCertificateRequest$/)
})

test('API-01 a request for a certificate must be signed with its key, and the key must be strong', async () => {
  for (const type of ['RSA3072', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519'])
    assert.equal(await refused(create(nodeOne, { stubPKCS10Request: (await newKey(type)).request })), 'allowed', type)
  const forged = Buffer.from(spec.stubPKCS10Request, 'base64')
  forged[forged.length - 1] = (forged.at(-1) ?? 0) ^ 1
  const at = 'spec.stubPKCS10Request: Invalid value'
  assert.match(await refused(create(nodeOne, { stubPKCS10Request: forged.toString('base64') })), new RegExp(`^422 .*${at}: invalid signature$`))
  assert.match(await refused(create(nodeOne, { stubPKCS10Request: 'QQ==' })), new RegExp(`^422 .*${at}: must be a valid PKCS#10 CSR$`))
})

test('API-01 a certificate is issued once, for the key that was asked for, by a user who may sign', async () => {
  const made = await create(nodeOne)
  const status = await issuedStatus(made, authority, Date.now())
  assert.match(
    await refused(setStatus(signer, await create(nodeOne, { signerName: 'example.com/other' }), { ...status })),
    /^422 .*spec\.signerName: Forbidden: User "signer" is not permitted to "sign" for signer "example\.com\/other"$/,
  )
  const { request } = await newKey('ED25519')
  const other = await issuedStatus({ ...made, spec: { ...made.spec, stubPKCS10Request: request } }, authority, Date.now())
  const wrong: readonly (readonly [change: object, want: RegExp])[] = [
    [other, /leaf certificate was not issued to the requested public key/],
    [{ certificateChain: 'text' }, /issued certificate chain must contain at least one certificate/],
    [{ certificateChain: pemOf(Buffer.from(status.certificateChain ?? '')) }, /leaf certificate does not parse as valid X\.509/],
    [{ notAfter: null }, /status\.notAfter: Required value: must be present and consistent with the issued certificate/],
    [{ notBefore: status.notAfter }, /status\.notBefore: Invalid value: ".+": must be set to the NotBefore time encoded in the leaf certificate/],
    [{ beginRefreshAt: status.notAfter }, /status\.beginRefreshAt: Invalid value: ".+": must be at least 10 minutes before status\.notAfter/],
    [
      { certificateChain: `${status.certificateChain}${status.certificateChain?.replaceAll('CERTIFICATE', 'PRIVATE KEY')}` },
      /entirely of CERTFICATE PEM blocks/,
    ],
    [await issuedStatus(made, authority, Date.now() - 3_600_000), /must be set to within 5 minutes of kube-apiserver's current time/],
  ]
  for (const [change, want] of wrong) assert.match(await refused(setStatus(signer, made, { ...status, ...change })), want)
  assert.equal((await setStatus(signer, made, status)).status.certificateChain, status.certificateChain)
  assert.match(await refused(setStatus(signer, made, { certificateChain: '' })), /immutable after PodCertificateRequest is issued, denied, or failed$/)
  const options = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
  const { rows } = await as(admin)('GET', `${inDefault}/${made.metadata.name}`, undefined, options)
  assert.deepEqual(rows[0].cells, [made.metadata.name, 'p', 'default', 'one', 'example.com/pods', 'Issued', '<none>'])
})

test('API-01 a ClusterTrustBundle holds certificates of authorities, each of them once', async () => {
  const post = (trustBundle: string) => refused(as(admin)('POST', `${root}/clustertrustbundles`, { metadata: { generateName: 'b-' }, spec: { trustBundle } }))
  const { certificateChain = '' } = await issuedStatus(await create(nodeOne), authority, Date.now())
  const at = 'spec.trustBundle: Invalid value: "<value omitted>"'
  assert.match(await post('text'), new RegExp(`^422 .*${at}: at least one trust anchor must be provided$`))
  assert.match(await post(certificateChain), new RegExp(`^422 .*${at}: entry 0 does not have the CA bit set$`))
  assert.match(await post(`${authority.cert}\n${authority.cert}\n`), new RegExp(`^422 .*${at}: duplicate trust anchor \\(indices \\[0 1\\]\\)$`))
  assert.match(await post(authority.cert.replaceAll('CERTIFICATE', 'X')), new RegExp(`^422 .*${at}: entry 0 has bad block type: X$`))
  assert.equal(await post(`text\n${authority.cert}\n`), 'allowed')
})

test('AUZ-02 the gates add their rules to the bootstrap policy', async () => {
  const rulesOf = async (name: string) => JSON.stringify((await as(admin)('GET', `${rbac}/clusterroles/${name}`)).rules)
  assert.match(await rulesOf('system:node'), /clustertrustbundles.*podcertificaterequests/)
  assert.match(await rulesOf('system:controller:podcertificaterequestcleaner'), /"delete","get","list","watch"/)
  assert.match(await rulesOf('system:cluster-trust-bundle-discovery'), /clustertrustbundles/)
  const { subjects } = await as(admin)('GET', `${rbac}/clusterrolebindings/system:cluster-trust-bundle-discovery`)
  assert.deepEqual(subjects, [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'system:serviceaccounts' }])
})

test('API-14 the optional resources are in discovery, and are the less preferred version of their group', async () => {
  const { groups } = await as(admin)('GET', '/apis')
  const { preferredVersion, versions } = groups.find(({ name }: Any) => name === 'certificates.k8s.io')
  assert.deepEqual([preferredVersion.version, versions.map(({ version }: Any) => version)], ['v1', ['v1', 'v1beta1']])
  const { resources } = await as(admin)('GET', root)
  assert.deepEqual(
    resources.map(({ name }: Any) => name),
    ['clustertrustbundles', 'podcertificaterequests', 'podcertificaterequests/status'],
  )
  const { paths, components } = await as(admin)('GET', '/openapi/v3/apis/certificates.k8s.io/v1beta1')
  assert.ok(paths[`${root}/namespaces/{namespace}/podcertificaterequests/{name}/status`])
  assert.ok(components.schemas['io.k8s.api.certificates.v1beta1.PodCertificateRequestSpec'])
  assert.equal((await as(admin)('GET', '/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.certificates.k8s.io')).spec.versionPriority, 9)
})
test('API-14 an optional resource needs its gate and --runtime-config', async () => {
  for (const given of [[gates], ['--runtime-config=certificates.k8s.io/v1beta1=true']]) {
    const api = await startServerWithFlags(given)
    try {
      await assert.rejects(plain(api.clientAs(admin)).request('GET', root), { code: 404 })
    } finally {
      await api.close()
    }
  }
})
