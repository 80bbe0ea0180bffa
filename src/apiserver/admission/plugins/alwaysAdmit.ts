/** Admits everything (L3): kept for those who still name it. Off by default. Upstream: plugin/pkg/admission/admit. */
import type { AdmissionPlugin } from '../admission.ts'

export const alwaysAdmit: AdmissionPlugin = { name: 'AlwaysAdmit', handles: () => false }
