/** Whether the controller of an object has seen its newest specification (L2). */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { Cause } from './answer.ts'

export function controllerSilence({ kind, metadata: { generation } }: Frozen<KubeObject>, observed: number | undefined): Cause | undefined {
  if (generation === undefined || (observed ?? 0) >= generation) return undefined
  return {
    text: `the controller of ${kind}s has not seen its newest specification: check that it runs`,
    evidence: `metadata.generation ${generation}, status.observedGeneration ${observed ?? 'absent'}`,
    next: 'skiff status',
  }
}
