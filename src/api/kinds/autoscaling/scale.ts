/** The table of a Scale (L1), which only scale subresources return. Upstream: printScale of kubernetes/pkg/printers (v1.36). */
import type { Scale } from '#api/gen/types/autoscaling.v1'
import { ageColumn, integer, text } from '../columns.ts'
import type { Column } from '../defineKind.ts'

export const scaleColumns: readonly Column<Scale>[] = [
  text('Name', (scale) => scale.metadata?.name ?? ''),
  integer('Desired', (scale) => scale.spec?.replicas),
  integer('Available', (scale) => scale.status?.replicas),
  ageColumn as unknown as Column<Scale>,
]
