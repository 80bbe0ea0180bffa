/** Admits everything (L3): kept for flags that still name it. Off by default. Upstream: plugin/pkg/admission/admit. */
import type { AdmissionPlugin } from '../admission.ts'

export const alwaysAdmit: AdmissionPlugin = { name: 'AlwaysAdmit', handles: () => false }
