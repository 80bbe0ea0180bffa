/** The page's views other than lists of kinds (L4), in the order of the sidebar. Each is one line here and one in app.tsx. */
import type { IconName } from './parts/basics.tsx'
import { hasSimulatedNodes } from './state.ts'

export interface View {
  readonly path: readonly string[]
  readonly title: string
  readonly icon: IconName
  /** Absent: always. */
  readonly isOffered?: () => boolean
}

const views: readonly View[] = [
  { path: ['overview'], title: 'Overview', icon: 'heart' },
  { path: ['scheduling'], title: 'Scheduling', icon: 'grid' },
  { path: ['live'], title: 'Live', icon: 'pulse' },
  { path: ['controllers'], title: 'Controllers', icon: 'turn' },
  { path: ['store'], title: 'Store', icon: 'drum' },
  { path: ['past'], title: 'Time travel', icon: 'clock' },
  { path: ['capacity'], title: 'Capacity', icon: 'bars' },
  { path: ['usage'], title: 'Usage', icon: 'chart' },
  { path: ['helm'], title: 'Helm releases', icon: 'box' },
  { path: ['chaos'], title: 'Chaos', icon: 'bolt', isOffered: () => hasSimulatedNodes.value },
  { path: ['access'], title: 'Access', icon: 'key' },
]

/** Those that this cluster has something for. */
export const offeredViews = (): readonly View[] => views.filter(({ isOffered }) => isOffered?.() ?? true)
