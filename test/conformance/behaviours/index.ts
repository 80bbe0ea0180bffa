/** Every group of behaviours that needs containers, by SIG. A group is one file and one line here. */
import type { BehaviourGroup } from './behaviour.ts'
import { downwardApiEnv } from './node/downwardApiEnv.ts'
import { entrypoint } from './node/entrypoint.ts'
import { initContainers } from './node/initContainers.ts'
import { configMapVolume } from './storage/configMapVolume.ts'
import { downwardApiVolume, projectedDownwardApi } from './storage/downwardApiVolume.ts'
import { emptyDir } from './storage/emptyDir.ts'
import { projectedCombined, projectedConfigMap, projectedSecret } from './storage/projected.ts'
import { secretVolume } from './storage/secretVolume.ts'
import { subPath } from './storage/subPath.ts'
import { wrapperVolumes } from './storage/wrapperVolumes.ts'

export const nodeBehaviours: readonly BehaviourGroup[] = [downwardApiEnv, entrypoint, initContainers]

export const storageBehaviours: readonly BehaviourGroup[] = [
  configMapVolume,
  downwardApiVolume,
  emptyDir,
  wrapperVolumes,
  projectedCombined,
  projectedConfigMap,
  projectedDownwardApi,
  projectedSecret,
  secretVolume,
  subPath,
]

export const appsBehaviours: readonly BehaviourGroup[] = []

/** sig-api-machinery, sig-architecture, sig-auth, sig-cli, sig-network, sig-scheduling. */
export const otherBehaviours: readonly BehaviourGroup[] = []

export const allBehaviours: readonly BehaviourGroup[] = [...nodeBehaviours, ...storageBehaviours, ...appsBehaviours, ...otherBehaviours]
