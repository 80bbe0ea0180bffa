/**
 * ResourceQuota (L3): refuses objects that would exceed a quota of their namespace, and charges the others to it.
 * Upstream: apiserver/pkg/admission/plugin/resourcequota (v1.36).
 */
import type { AdmissionPlugin } from '../admission.ts'
import { changesUsage } from '../quota/checkRequest.ts'
import type { LimitedResource } from '../quota/limitedResources.ts'
import { QuotaEvaluator, type QuotaEvaluatorDeps } from '../quota/quotaEvaluator.ts'

/** @param limitedResources resources that may be used only under a quota */
export function resourceQuota(deps: QuotaEvaluatorDeps, limitedResources: readonly LimitedResource[] = []): AdmissionPlugin {
  const evaluator = new QuotaEvaluator(deps, limitedResources)
  return {
    name: 'ResourceQuota',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    validate: (attributes) => (changesUsage(attributes) ? evaluator.evaluate(attributes) : undefined),
  }
}
