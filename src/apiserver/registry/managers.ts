/** Keeps metadata.managedFields on ordinary writes (L3). */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { WriteContext } from './storedResource.ts'

export function trackManagers(_context: WriteContext, _object: KubeObject, _old: Frozen<KubeObject> | undefined, _nowMs: number): void {}
