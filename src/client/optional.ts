/** Built-in resources that v1.36 does not serve by default (L2), each with its type, as in builtIn.ts. */
import type { ClusterTrustBundle, PodCertificateRequest } from '#api/gen/types/certificates.v1beta1'
import type { StorageVersionMigration } from '#api/gen/types/storagemigration.v1beta1'
import { clusterScoped, namespaced } from './builtIn.ts'

const group = 'certificates.k8s.io'

export const clusterTrustBundles = clusterScoped<ClusterTrustBundle>(group, 'v1beta1', 'clustertrustbundles', 'ClusterTrustBundle')
export const podCertificateRequests = namespaced<PodCertificateRequest>(group, 'v1beta1', 'podcertificaterequests', 'PodCertificateRequest')
export const storageVersionMigrations = clusterScoped<StorageVersionMigration>(
  'storagemigration.k8s.io',
  'v1beta1',
  'storageversionmigrations',
  'StorageVersionMigration',
)
