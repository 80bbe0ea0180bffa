/**
 * Applies a job's podFailurePolicy to a failed pod (L3). Pure; plan.ts acts on it. Rules are tried in order, the first that matches
 * decides. Upstream: pkg/controller/job/pod_failure_policy.go (v1.36).
 */
import type { Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern } from '#api/gen/types/batch.v1'
import type { ContainerStatus, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

export interface FailureMatch {
  /** Count, FailIndex, FailJob or Ignore; undefined when no rule matches. */
  readonly action?: string | undefined
  /** The failure counts towards the back-off limit. */
  readonly counts: boolean
  /** Of FailJob: why the job fails. */
  readonly message?: string | undefined
}

const noMatch: FailureMatch = { counts: true }

export function matchPodFailurePolicy(job: Frozen<Job>, pod: Frozen<Pod>): FailureMatch {
  const { namespace, name } = pod.metadata
  for (const [index, { action, onExitCodes, onPodConditions }] of (job.spec.podFailurePolicy?.rules ?? []).entries()) {
    const container = onExitCodes && containerOf(pod, onExitCodes)
    const condition = onExitCodes ? undefined : conditionOf(pod, onPodConditions ?? [])
    if (!container && !condition) continue
    if (action !== 'FailJob') return { action, counts: action !== 'Ignore' }
    const what = container
      ? `Container ${container.name} for pod ${namespace}/${name} failed with exit code ${container.state?.terminated?.exitCode}`
      : `Pod ${namespace}/${name} has condition ${condition?.type}`
    return { action, counts: true, message: `${what} matching ${action} rule at index ${index}` }
  }
  return noMatch
}

function containerOf(pod: Frozen<Pod>, requirement: Frozen<PodFailurePolicyOnExitCodesRequirement>): Frozen<ContainerStatus> | undefined {
  const matches = ({ name, state }: Frozen<ContainerStatus>) => {
    const exitCode = state?.terminated?.exitCode ?? 0
    if (exitCode === 0 || (requirement.containerName !== undefined && requirement.containerName !== name)) return false
    const listed = requirement.values.includes(exitCode)
    return requirement.operator === 'In' ? listed : requirement.operator === 'NotIn' && !listed
  }
  return pod.status?.containerStatuses?.find(matches) ?? pod.status?.initContainerStatuses?.find(matches)
}

function conditionOf(pod: Frozen<Pod>, patterns: readonly Frozen<PodFailurePolicyOnPodConditionsPattern>[]) {
  return pod.status?.conditions?.find((condition) => patterns.some(({ type, status = 'True' }) => condition.type === type && condition.status === status))
}
