/**
 * Controllers and simulated nodes in processes of their own (L5), on cores of their own: the API server keeps one core for the API, the store and the scheduler.
 * The scheduler stays because the server serves its explanations. The parts talk to it over HTTPS.
 */
import type { ProcessLayout } from './layout.ts'
import { createPart } from './part.ts'

export const split: ProcessLayout = {
  name: 'split',
  controllers: async ({ tools }, place) => createPart({ word: 'cluster-controllers', role: 'controllers', tools }, place).component,
  simulatedNodes: ({ tools, ownKubelets, onLook }, place) => {
    const part = createPart({ word: 'cluster-simulated-nodes', role: 'simulated-nodes', tools }, place)
    onLook(part.look)
    ownKubelets.measureElsewhere(part.measure)
    return part.component
  },
}
