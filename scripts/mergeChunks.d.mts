import type { BuildOptions, Metafile } from 'esbuild'

export const programs: readonly string[]
export function groupsOf(outputs: Metafile['outputs']): string[][]
export function mergeChunks(root: string, outputs: Metafile['outputs'], options: BuildOptions): Promise<void>
