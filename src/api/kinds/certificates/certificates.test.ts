import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { seededRandom } from '#base/random'
import { changed, kindRules } from '#testing/kindRules'
import { ecdsaRequest, ed25519Request, selfSignedCertificate } from '#testing/testCertificateRequests'
import { certificateSigningRequest } from './certificateSigningRequest.ts'
import { parsePem } from './pem.ts'
import { parseCertificateRequest } from './pkcs10.ts'

const good: CertificateSigningRequest = {
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: { name: 'alice' },
  spec: { request: ecdsaRequest, signerName: 'example.com/client', usages: ['client auth'] },
  status: {},
}
const context = { nowMs: Date.parse('2026-01-01T00:00:00Z'), random: seededRandom(1), user: { name: 'alice', uid: '1', groups: ['g'], extra: { k: ['v'] } } }
const path = FieldPath.of()
const on = kindRules('EXP-04', certificateSigningRequest, good)
const approved = { type: 'Approved', status: 'True', reason: 'R', lastUpdateTime: '2026-01-01T00:00:00Z', lastTransitionTime: '2026-01-01T00:00:00Z' }
const denied = { ...approved, type: 'Denied' }
const label =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const supported =
  '"any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping"'
const base64 = (text: string) => Buffer.from(text).toString('base64')

on.create([
  ['a good one', {}, []],
  ['another kind of key', { 'spec.request': ed25519Request }, []],
  ['no PEM', { 'spec.request': base64('x') }, [`spec.request: Invalid value: "${base64('x')}": PEM block type must be CERTIFICATE REQUEST`]],
  [
    'a certificate instead',
    { 'spec.request': selfSignedCertificate },
    [`spec.request: Invalid value: "${selfSignedCertificate}": PEM block type must be CERTIFICATE REQUEST`],
  ],
  ['no usages', { 'spec.usages': [] }, ['spec.usages: Required value']],
  ['an unknown usage', { 'spec.usages': ['magic'] }, [`spec.usages[0]: Unsupported value: "magic": supported values: ${supported}`]],
  ['a usage twice', { 'spec.usages': ['signing', 'signing'] }, ['spec.usages[1]: Duplicate value: "signing"']],
  ['no signer', { 'spec.signerName': '' }, ['spec.signerName: Required value']],
  [
    'a signer without a path',
    { 'spec.signerName': 'example.com' },
    ['spec.signerName: Invalid value: "example.com": must be a fully qualified domain and path of the form \'example.com/signer-name\''],
  ],
  [
    'a signer of one label',
    { 'spec.signerName': 'example/a' },
    ['spec.signerName: Invalid value: "example": should be a domain with at least two segments separated by dots'],
  ],
  ['a signer with capitals', { 'spec.signerName': 'Example.com/a' }, [`spec.signerName: Invalid value: "Example.com": validating label "Example": ${label}`]],
  [
    'the legacy signer',
    { 'spec.signerName': 'kubernetes.io/legacy-unknown' },
    ['spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version'],
  ],
  [
    'a short life',
    { 'spec.expirationSeconds': 599 },
    ['spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)'],
  ],
])
on.subresource('approval', [
  ['approving', { 'status.conditions': [approved] }, []],
  [
    'approving and denying',
    { 'status.conditions': [approved, denied] },
    ['status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'],
  ],
  ['approving twice', { 'status.conditions': [approved, approved] }, ['status.conditions[1].type: Duplicate value: "Approved"']],
  [
    'not approving',
    { 'status.conditions': [{ ...approved, status: 'False' }] },
    ['status.conditions[0].status: Unsupported value: "False": supported values: "True"'],
  ],
  [
    'taking it back',
    { 'status.conditions': [] },
    ['status.conditions: Forbidden: updates may not remove a condition of type "Approved"'],
    { 'status.conditions': [approved] },
  ],
  ['a certificate is not its business', { 'status.certificate': selfSignedCertificate }, []],
])
on.subresource('status', [
  ['signing', { 'status.certificate': selfSignedCertificate }, []],
  [
    'signing with nonsense',
    { 'status.certificate': base64('x') },
    ['status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block'],
  ],
  [
    'signing with a request',
    { 'status.certificate': ecdsaRequest },
    ['status.certificate: Invalid value: "<certificate data>": only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"'],
  ],
  [
    'signing again',
    { 'status.certificate': base64(`${Buffer.from(selfSignedCertificate, 'base64')}\n`) },
    ['status.certificate: Forbidden: updates may not modify existing certificate content'],
    { 'status.certificate': selfSignedCertificate },
  ],
  ['approving there', { 'status.conditions': [approved] }, ['status.conditions: Forbidden: updates may not add a condition of type "Approved"']],
  ['rewording an approval is ignored', { 'status.conditions': [{ ...approved, reason: 'Other' }] }, [], { 'status.conditions': [approved] }],
])

test('EXP-04 CertificateSigningRequest: who asks is who asks, and nothing is approved from the start', () => {
  const obj = changed(good, { 'spec.username': 'root', 'spec.groups': ['system:masters'], 'status.conditions': [approved] })
  certificateSigningRequest.prepareForCreate?.({ obj, path, context })
  assert.deepEqual(obj.spec, { ...good.spec, username: 'alice', uid: '1', groups: ['g'], extra: { k: ['v'] } })
  assert.deepEqual(obj.status, {})
})

test('EXP-04 CertificateSigningRequest: conditions get their times', () => {
  const obj = changed(good, { 'status.conditions': [{ type: 'Denied', status: 'True' }] })
  certificateSigningRequest.subresources?.approval?.prepareForUpdate?.({ obj, old: good as Frozen<CertificateSigningRequest>, path, context })
  assert.deepEqual(obj.status.conditions, [
    { type: 'Denied', status: 'True', lastUpdateTime: '2026-01-01T00:00:00Z', lastTransitionTime: '2026-01-01T00:00:00Z' },
  ])
})

test('EXP-04 a certificate request is read down to what is signed, and how', () => {
  const parsed = parseCertificateRequest(ecdsaRequest)
  assert.ok(typeof parsed !== 'string')
  assert.equal(parsed.algorithm, '1.2.840.10045.4.3.2')
  const [block] = parsePem(Buffer.from(ecdsaRequest, 'base64').toString())
  const cut = `-----BEGIN CERTIFICATE REQUEST-----\n${Buffer.from(block?.bytes.subarray(0, 40) ?? []).toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`
  assert.equal(parseCertificateRequest(base64(cut)), 'asn1: structure error: malformed certificate request')
})

const block = (text: string, type = 'A') => `-----BEGIN ${type}-----\n${text}\n-----END ${type}-----\n`
const pems: readonly { name: string; text: string; want: readonly string[] }[] = [
  { name: 'two blocks and text around them', text: `x\n${block('AA==')}y\n${block('AQ==', 'B')}z`, want: ['A 00', 'B 01'] },
  { name: 'line ends of two bytes', text: block('AA==').replaceAll('\n', '\r\n'), want: ['A 00'] },
  { name: 'a beginning without an end before a block', text: `-----BEGIN A-----\nAQ==\n${block('AA==')}`, want: ['A 00'] },
  { name: 'an end of another type', text: block('AA==').replace('END A', 'END B'), want: [] },
  { name: 'characters that are not base64', text: `${block('A!A==')}${block('AQ==')}`, want: ['A 01'] },
  { name: 'no end', text: '-----BEGIN A-----\nAA==', want: [] },
]
for (const { name, text, want } of pems) {
  test(`EXP-04 PEM blocks are read, ${name}`, () =>
    assert.deepEqual(
      parsePem(text).map(({ type, bytes }) => `${type} ${Buffer.from(bytes).toString('hex')}`),
      want,
    ))
}

test('EXP-04 a request of two PEM blocks is the first of them', () => {
  const both = Buffer.concat([Buffer.from(ecdsaRequest, 'base64'), Buffer.from(ed25519Request, 'base64')]).toString('base64')
  const parsed = parseCertificateRequest(both)
  assert.ok(typeof parsed !== 'string')
  assert.deepEqual([parsed.commonName, parsed.organizations], ['alice', ['team']])
})
