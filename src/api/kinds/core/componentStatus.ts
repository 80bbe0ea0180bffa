/** ComponentStatus (L1), deprecated and read-only. Upstream: pkg/registry/core/componentstatus, printComponentStatus (v1.36). */
import type { ComponentStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'
import { nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'

const words: Readonly<Record<string, string>> = bareMap({ True: 'Healthy', False: 'Unhealthy' })

export const componentStatus = defineKind<ComponentStatus>({
  group: '',
  kind: 'ComponentStatus',
  generation: false,
  columns: [
    nameColumn,
    text('Status', (obj) => words[healthy(obj)?.status ?? ''] ?? 'Unknown'),
    text('Message', (obj) => healthy(obj)?.message ?? ''),
    text('Error', (obj) => healthy(obj)?.error ?? ''),
  ],
})

function healthy(obj: Frozen<ComponentStatus>) {
  return obj.conditions?.find((condition) => condition.type === 'Healthy')
}
