/** ClusterTrustBundle and PodCertificateRequest (L1). Upstream: pkg/registry/certificates, printers (v1.36). */
import type { ClusterTrustBundle, PodCertificateRequest } from '#api/gen/types/certificates.v1beta1'
import { isConditionTrue } from '#api/machinery/conditions'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, none, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'

export const clusterTrustBundle = defineKind<ClusterTrustBundle>({
  group: 'certificates.k8s.io',
  kind: 'ClusterTrustBundle',
  generation: false,
  allowUnconditionalUpdate: false,
  // A bundle of a signer is named after it, `example.com:signer:name`; colons are no DNS name.
  validateName: (name) => (/^[a-z0-9]([-a-z0-9.:]*[a-z0-9])?$/.test(name) ? [] : ['must consist of a signer name with colons for slashes, and a DNS name']),
  columns: [nameColumn, text('SignerName', (obj) => obj.spec?.signerName || none)],
  selectableFields: { 'spec.signerName': (obj) => obj.spec?.signerName ?? '' },
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec.signerName, old.spec.signerName, path.child('spec', 'signerName')),
})

export const podCertificateRequest = defineKind<PodCertificateRequest>({
  group: 'certificates.k8s.io',
  kind: 'PodCertificateRequest',
  generation: false,
  columns: [
    nameColumn,
    text('PodName', (obj) => obj.spec?.podName ?? ''),
    text('ServiceAccountName', (obj) => obj.spec?.serviceAccountName ?? ''),
    text('NodeName', (obj) => obj.spec?.nodeName ?? ''),
    text('SignerName', (obj) => obj.spec?.signerName ?? ''),
    text('State', (obj) => ['Issued', 'Denied', 'Failed'].find((type) => isConditionTrue(obj.status?.conditions, type)) ?? 'Pending'),
    ageColumn,
  ],
  selectableFields: {
    'spec.signerName': (obj) => obj.spec?.signerName ?? '',
    'spec.podName': (obj) => obj.spec?.podName ?? '',
    'spec.nodeName': (obj) => obj.spec?.nodeName ?? '',
  },
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec, old.spec, path.child('spec')),
  status: statusStrategy<PodCertificateRequest>(),
})
