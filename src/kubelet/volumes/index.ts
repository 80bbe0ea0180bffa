/** The volume types, in the order in which they are asked (L3). */
import { configMapVolume } from './configMap.ts'
import { csiVolume } from './csi/csiVolume.ts'
import { downwardApiVolume } from './downwardApi.ts'
import { emptyDirVolume } from './emptyDir.ts'
import { hostPathVolume } from './hostPath.ts'
import { localVolume } from './localVolume.ts'
import { projectedVolume } from './projected.ts'
import { secretVolume } from './secret.ts'
import type { VolumePlugin } from './volumePlugin.ts'

export const volumePlugins = [
  emptyDirVolume,
  hostPathVolume,
  configMapVolume,
  secretVolume,
  downwardApiVolume,
  projectedVolume,
  localVolume,
  csiVolume,
] as const satisfies readonly VolumePlugin[]
