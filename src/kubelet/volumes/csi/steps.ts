/** The steps of a CSI volume (L3), loaded with the first one: a node without CSI volumes keeps none of their code in memory. */
export { publishBlock, stageBlock, unpublishBlock, unstageBlock } from './block.ts'
export { growVolume } from './growing.ts'
export { publishFilesystem, unpublishFilesystem } from './publishing.ts'
export { stagedVolumes } from './stagedVolumes.ts'
export { stageFilesystem, unstageFilesystem } from './staging.ts'
export { usageOf } from './statistics.ts'
