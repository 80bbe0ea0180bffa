/**
 * Plugins whose features are off (L3): registered and named in the chain as upstream's are, they handle nothing.
 * PodGroupProtection and PodGroupWorkloadExists wait for GenericWorkload, JobValidation for WorkloadWithJob.
 * Upstream: plugin/pkg/admission/{scheduling/podgroupprotection,podgroup,job}.
 */
import type { AdmissionPlugin } from '../admission.ts'

const gatedOff = (name: string): AdmissionPlugin => ({ name, handles: () => false })

export const podGroupProtection = gatedOff('PodGroupProtection')
export const podGroupWorkloadExists = gatedOff('PodGroupWorkloadExists')
export const jobValidation = gatedOff('JobValidation')
