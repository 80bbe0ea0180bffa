/** Everything in the process of the server (L5): the fastest start and the least memory, and one core for all of it. */
import { controllersComponent } from './controllers.ts'
import type { ProcessLayout } from './layout.ts'
import { simulatedNodesComponent } from './simulated.ts'

export const single: ProcessLayout = {
  name: 'single',
  controllers: (parts, { transportAs }) => controllersComponent(transportAs, parts),
  simulatedNodes: (parts, { transportAs }) => simulatedNodesComponent(transportAs, parts),
}
