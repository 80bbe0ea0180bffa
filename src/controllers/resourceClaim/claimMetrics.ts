/** Metrics of resource claims (L3). Upstream: pkg/controller/resourceclaim/metrics (v1.36). */
import type { ResourceClaim } from '#api/gen/types/resource.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Labels, Metrics } from '#base/metrics'
import { podClaimAnnotation } from './podClaims.ts'

export interface ClaimMetrics {
  created(succeeded: boolean, adminAccess: boolean): void
  observe(before: Frozen<ResourceClaim> | undefined, after: Frozen<ResourceClaim> | undefined): void
}

export function createClaimMetrics(metrics: Metrics): ClaimMetrics {
  const creates = metrics.counter({
    name: 'resourceclaim_controller_creates_total',
    help: 'How many claims were to be made, by how it went and by whether they give an administrator access.',
    labels: ['status', 'admin_access'],
  })
  const claims = metrics.gauge({
    name: 'resourceclaim_controller_resource_claims',
    help: 'How many claims there are, by whether they have devices, by administrator access and by what they were made for.',
    labels: ['allocated', 'admin_access', 'source'],
  })
  return {
    created: (succeeded, adminAccess) => creates.inc({ status: succeeded ? 'success' : 'failure', admin_access: String(adminAccess) }),
    observe(before, after) {
      if (before) claims.dec(labelsOf(before))
      if (after) claims.inc(labelsOf(after))
    },
  }
}

function labelsOf({ metadata, spec, status }: Frozen<ResourceClaim>): Labels {
  const annotations = metadata.annotations ?? {}
  const extended = annotations['resource.kubernetes.io/extended-resource-claim'] === 'true' ? 'extended_resource' : ''
  return {
    allocated: String(status?.allocation !== undefined),
    admin_access: String(spec.devices?.requests?.some(({ exactly }) => exactly?.adminAccess === true) === true),
    source: annotations[podClaimAnnotation] === undefined ? extended : 'resource_claim_template',
  }
}
