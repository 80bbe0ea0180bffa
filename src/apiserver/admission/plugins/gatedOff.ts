/**
 * Plugins whose features are off (L3): registered and named in the chain as upstream's are, they handle nothing.
 * PodGroupProtection and PodGroupWorkloadExists wait for GenericWorkload, JobValidation for WorkloadWithJob. NodeDeclaredFeatureValidator is as if
 * NodeDeclaredFeatures were off: kubelets here declare no features, and every resize that needs one would be refused.
 * Upstream: plugin/pkg/admission/{scheduling/podgroupprotection,podgroup,job,nodedeclaredfeatures}.
 */
import type { AdmissionPlugin } from '../admission.ts'

const gatedOff = (name: string): AdmissionPlugin => ({ name, handles: () => false })

export const podGroupProtection = gatedOff('PodGroupProtection')
export const podGroupWorkloadExists = gatedOff('PodGroupWorkloadExists')
export const jobValidation = gatedOff('JobValidation')
export const nodeDeclaredFeatureValidator = gatedOff('NodeDeclaredFeatureValidator')
