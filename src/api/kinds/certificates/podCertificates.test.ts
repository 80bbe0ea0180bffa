/** What PodCertificateRequests and ClusterTrustBundles may hold, as far as their strategies tell. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClusterTrustBundle, PodCertificateRequest } from '#api/gen/types/certificates.v1beta1'
import { type FieldError, FieldPath } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { seededRandom } from '#base/random'
import { clusterTrustBundle } from './clusterTrustBundle.ts'
import { podCertificateRequest } from './podCertificateRequest.ts'

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }
const shown = (errors: readonly FieldError[] | undefined) => errors?.map(({ field, body }) => `${field}: ${body}`)

const spec: PodCertificateRequest['spec'] = {
  signerName: 'example.com/signer',
  podName: 'p',
  podUID: 'u1',
  serviceAccountName: 'default',
  serviceAccountUID: 'u2',
  nodeName: 'n',
  nodeUID: 'u3',
  maxExpirationSeconds: 3600,
  stubPKCS10Request: 'QQ==',
}
type Status = PodCertificateRequest['status']
const request = (changes: Partial<PodCertificateRequest['spec']> = {}, status: Status = {}) =>
  ({ kind: 'PodCertificateRequest', metadata: { name: 'r' }, spec: { ...spec, ...changes }, status }) as PodCertificateRequest

const longUid = 'u'.repeat(129)
const oneForm = 'spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set'
const eleven = Buffer.alloc(11 * 1024).toString('base64')
const specs: readonly (readonly [name: string, changes: Partial<PodCertificateRequest['spec']>, want: readonly string[]])[] = [
  ['a whole one', {}, []],
  ['91 days for a signer outside Kubernetes', { maxExpirationSeconds: 7_862_400 }, []],
  [
    'more than a day for a signer of Kubernetes',
    { signerName: 'sub.kubernetes.io/x', maxExpirationSeconds: 86_401 },
    ['spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]'],
  ],
  ['too short a life', { maxExpirationSeconds: 3599 }, ['spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, 7862400]']],
  [
    'no UIDs, or long ones',
    { podUID: '', serviceAccountUID: longUid, nodeUID: '' },
    [
      'spec.podUID: Invalid value: "": must not be empty',
      'spec.serviceAccountUID: Too long: may not be more than 128 bytes',
      'spec.nodeUID: Invalid value: "": must not be empty',
    ],
  ],
  [
    'annotations without a domain',
    { unverifiedUserAnnotations: { a: 'b', 'x.y/Z': 'c' } },
    ['spec.unverifiedUserAnnotations: Invalid value: "a": must be a domain-prefixed key (such as "acme.io/foo")'],
  ],
  ['no key', { stubPKCS10Request: '' }, [oneForm]],
  ['both forms of a key', { pkixPublicKey: 'QQ==', proofOfPossession: 'QQ==' }, [oneForm]],
  ['half of the older form', { stubPKCS10Request: '', pkixPublicKey: 'QQ==' }, [oneForm]],
  ['the older form', { stubPKCS10Request: '', pkixPublicKey: 'QQ==', proofOfPossession: 'QQ==' }, []],
  ['a long request', { stubPKCS10Request: eleven }, ['spec.stubPKCS10Request: Too long: may not be more than 10240 bytes']],
]
for (const [name, changes, want] of specs)
  test(`API-01 a PodCertificateRequest with ${name}`, () => {
    assert.deepEqual(shown(podCertificateRequest.validate?.({ obj: request(changes), path, context })), want)
  })

const condition = (type: string, status = 'True') => ({ type, status, reason: 'Why', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' })
const terminal = 'status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed'
const at = 'status.conditions'
const statuses: readonly (readonly [name: string, old: Status, now: Status, want: readonly string[]])[] = [
  ['decided', {}, { conditions: [condition('Denied')] }, []],
  ['issued', {}, { conditions: [condition('Issued')], certificateChain: 'x' }, []],
  ['left as it is', { conditions: [condition('Failed')] }, { conditions: [condition('Failed')] }, []],
  ['decided again', { conditions: [condition('Failed')] }, { conditions: [condition('Denied')] }, [terminal]],
  [
    'denied with a certificate',
    {},
    { conditions: [condition('Denied')], certificateChain: 'x' },
    ['status: Invalid value: non-condition status fields must be empty when denying or failing the PodCertificateRequest'],
  ],
  [
    'changed without a decision',
    {},
    { certificateChain: 'x' },
    ['status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed"'],
  ],
  [
    'given two decisions, one of them False, and another condition',
    {},
    { conditions: [condition('Issued'), condition('Denied', 'False'), condition('Ready')] },
    [
      `${at}[1].type: Invalid value: "Denied": There may be at most one condition with type "Issued", "Denied", or "Failed"`,
      `${at}[1].status: Unsupported value: "False": supported values: "True"`,
      `${at}[2].type: Unsupported value: "Ready": supported values: "Issued", "Denied", "Failed"`,
    ],
  ],
]
for (const [name, old, now, want] of statuses)
  test(`API-01 the status of a PodCertificateRequest is ${name}`, () => {
    const input = { obj: request({}, now), old: request({}, old) as Frozen<PodCertificateRequest>, path, context }
    assert.deepEqual(shown(podCertificateRequest.status?.validateUpdate?.(input)), want)
  })

test('API-01 a write of the status of a PodCertificateRequest changes no spec, labels or finalizers; a write of the object changes no status', () => {
  const old = request({}, {}) as Frozen<PodCertificateRequest>
  const obj = { ...request({ podName: 'other' }, { certificateChain: 'x' }), metadata: { name: 'r', labels: { a: 'b' }, finalizers: ['x.y/z'] } }
  podCertificateRequest.status?.prepareForUpdate?.({ obj, old, path, context })
  assert.deepEqual([obj.spec.podName, obj.metadata, obj.status], ['p', { name: 'r' }, { certificateChain: 'x' }])
  podCertificateRequest.prepareForUpdate?.({ obj, old, path, context })
  assert.deepEqual(obj.status, {})
})

const bundles: readonly (readonly [name: string, signerName: string | undefined, want: readonly string[]])[] = [
  ['anchors', undefined, []],
  ['example.com:signer:name', 'example.com/signer', []],
  [
    'example.com:signer:name',
    undefined,
    ['metadata.name: Invalid value: "example.com:signer:name": ClusterTrustBundle without signer name must not have ":" in its name'],
  ],
  [
    'name',
    'example.com/signer',
    ['metadata.name: Invalid value: "name": ClusterTrustBundle for signerName example.com/signer must be named with prefix example.com:signer:'],
  ],
]
for (const [name, signerName, want] of bundles)
  test(`API-01 a ClusterTrustBundle called ${name} of ${signerName ?? 'no signer'}`, () => {
    const obj = { metadata: { name }, spec: { signerName, trustBundle: '' } } as ClusterTrustBundle
    assert.deepEqual(shown(clusterTrustBundle.validate?.({ obj, path, context })), want)
  })
