/**
 * Plugins whose feature gates are off (L3): they are registered in the chain as upstream's are, and handle nothing.
 * PodGroupProtection and PodGroupWorkloadExists wait for GenericWorkload, JobValidation for WorkloadWithJob.
 * Upstream: plugin/pkg/admission/{scheduling/podgroupprotection,podgroup,job}.
 */
import type { AdmissionPlugin } from '../admission.ts'

const gatedOff = (name: string): AdmissionPlugin => ({ name, handles: () => false })

export const podGroupProtection = gatedOff('PodGroupProtection')
export const podGroupWorkloadExists = gatedOff('PodGroupWorkloadExists')
export const jobValidation = gatedOff('JobValidation')
