/** Every control of the Pod Security Standards (L1, pure), one line each. Upstream: policy.DefaultChecks(). */
import type { Control } from '../control.ts'
import { allowPrivilegeEscalation } from './allowPrivilegeEscalation.ts'
import { appArmorProfile } from './appArmorProfile.ts'
import { capabilitiesBaseline } from './capabilitiesBaseline.ts'
import { capabilitiesRestricted } from './capabilitiesRestricted.ts'
import { hostNamespaces } from './hostNamespaces.ts'
import { hostPathVolumes } from './hostPathVolumes.ts'
import { hostPorts } from './hostPorts.ts'
import { hostProbesAndHostLifecycle } from './hostProbesAndHostLifecycle.ts'
import { privileged } from './privileged.ts'
import { procMountBaseline, procMountRestricted } from './procMount.ts'
import { restrictedVolumes } from './restrictedVolumes.ts'
import { runAsNonRoot } from './runAsNonRoot.ts'
import { runAsUser } from './runAsUser.ts'
import { seccompProfileBaseline, seccompProfileRestricted } from './seccompProfile.ts'
import { seLinuxOptions } from './seLinuxOptions.ts'
import { sysctls } from './sysctls.ts'
import { windowsHostProcess } from './windowsHostProcess.ts'

export const controls: readonly Control[] = [
  allowPrivilegeEscalation,
  appArmorProfile,
  capabilitiesBaseline,
  capabilitiesRestricted,
  hostNamespaces,
  hostPathVolumes,
  hostPorts,
  hostProbesAndHostLifecycle,
  privileged,
  procMountBaseline,
  procMountRestricted,
  restrictedVolumes,
  runAsNonRoot,
  runAsUser,
  seccompProfileBaseline,
  seccompProfileRestricted,
  seLinuxOptions,
  sysctls,
  windowsHostProcess,
]
