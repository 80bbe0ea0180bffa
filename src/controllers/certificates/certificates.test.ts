import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import { isOutdated } from './cleaner.ts'
import { apiServerClient, certificateDurationMs, kubeletClient, kubeletServing, legacyUnknown, type RequestContent, requestFault } from './signerRules.ts'

const node: RequestContent = {
  subject: [],
  commonName: 'system:node:a',
  organizations: ['system:nodes'],
  dnsNames: [],
  ipAddresses: [],
  emailAddresses: [],
  uris: [],
}
const twoNames = [
  { type: '2.5.4.3', value: 'alice' },
  { type: '2.5.4.3', value: 'system:node:a' },
]
const client = ['digital signature', 'client auth']
const server = ['digital signature', 'key encipherment', 'server auth']
const rules = [
  { signer: kubeletClient, content: node, usages: client, want: undefined },
  { signer: kubeletClient, content: node, usages: ['key encipherment', ...client], want: undefined },
  { signer: kubeletClient, content: node, usages: server, want: 'usages did not match [client auth digital signature key encipherment]' },
  { signer: kubeletClient, content: { ...node, organizations: ['a', 'system:nodes'] }, usages: client, want: 'subject organization is not system:nodes' },
  { signer: kubeletClient, content: { ...node, commonName: 'a' }, usages: client, want: 'subject common name does not begin with system:node:' },
  { signer: kubeletClient, content: { ...node, ipAddresses: ['192.0.2.1'] }, usages: client, want: 'IP subjectAltNames are not allowed' },
  { signer: kubeletClient, content: { ...node, dnsNames: ['a'] }, usages: client, want: 'DNS subjectAltNames are not allowed' },
  { signer: kubeletServing, content: node, usages: server, want: 'DNS or IP subjectAltName is required' },
  { signer: kubeletServing, content: { ...node, dnsNames: ['a'] }, usages: server, want: undefined },
  { signer: kubeletServing, content: { ...node, dnsNames: ['a'], uris: ['u:x'] }, usages: server, want: 'URI subjectAltNames are not allowed' },
  { signer: apiServerClient, content: node, usages: ['client auth'], want: undefined },
  { signer: apiServerClient, content: node, usages: server, want: 'invalid usage for client certificate: server auth' },
  { signer: apiServerClient, content: node, usages: ['digital signature'], want: 'missing required usage for client certificate: client auth' },
  {
    signer: apiServerClient,
    content: { ...node, organizations: ['a', 'system:masters'] },
    usages: ['client auth'],
    want: 'use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
  },
  { signer: kubeletClient, content: { ...node, subject: twoNames }, usages: client, want: 'subject has 2 common names, only one is allowed' },
  { signer: kubeletServing, content: { ...node, subject: twoNames }, usages: server, want: 'subject has 2 common names, only one is allowed' },
  { signer: apiServerClient, content: { ...node, subject: twoNames }, usages: client, want: 'subject has 2 common names, only one is allowed' },
  { signer: legacyUnknown, content: { ...node, subject: twoNames }, usages: client, want: 'subject has 2 common names, only one is allowed' },
  { signer: legacyUnknown, content: node, usages: ['any'], want: undefined },
] as const
for (const { signer, content, usages, want } of rules) {
  test(`CTL-19 ${signer} on ${content.commonName} for ${usages.join(', ')}: ${want ?? 'signs'}`, () =>
    assert.equal(requestFault(signer, content, usages), want))
}

test('CTL-19 a certificate lives as long as was asked for, within bounds', () => {
  const yearMs = 365 * 86_400_000
  assert.deepEqual(
    [undefined, 60, 3600, 10 * yearMs].map((seconds) => certificateDurationMs(seconds, yearMs)),
    [yearMs, 600_000, 3_600_000, yearMs],
  )
})

const nowMs = Date.UTC(2026, 0, 2)
const ago = (hours: number) => new Date(nowMs - hours * 3_600_000).toISOString()
const request = (createdHours: number, type?: string, decidedHours = 0, certificate?: string): CertificateSigningRequest => ({
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: { name: 'r', creationTimestamp: ago(createdHours) },
  spec: { request: '', signerName: 'a/b' },
  status: { ...(type ? { conditions: [{ type, status: 'True', lastUpdateTime: ago(decidedHours) }] } : {}), ...(certificate ? { certificate } : {}) },
})
const ages = [
  { name: 'waiting for less than a day', object: request(23.9), want: false },
  { name: 'waiting for more than a day', object: request(24.1), want: true },
  { name: 'denied an hour ago', object: request(1000, 'Denied', 1.1), want: true },
  { name: 'denied just now', object: request(1000, 'Denied', 0.9), want: false },
  { name: 'failed an hour ago', object: request(1000, 'Failed', 1.1), want: true },
  { name: 'approved long ago, never signed', object: request(1000, 'Approved', 1000), want: false },
  { name: 'approved and signed an hour ago', object: request(1000, 'Approved', 1.1, 'x'), want: true },
]
for (const { name, object, want } of ages) test(`CTL-19 cleaning up requests: ${name}`, () => assert.equal(isOutdated(object, nowMs), want))
