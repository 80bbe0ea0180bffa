/** The views of a kubelet, one file each (L3): its kind, and how it is computed. The API server serves each as a resource of node.skiff.dev. */
import { networkProbesView } from './networkProbes.ts'
import { nodeCallsView } from './nodeCalls.ts'
import { nodeRoutesView } from './nodeRoutes.ts'
import type { NodeView } from './nodeView.ts'
import { podTracesView } from './podTraces.ts'
import { podWorkersView } from './podWorkers.ts'
import { serviceRulesView } from './serviceRules.ts'

export const nodeViews: readonly NodeView[] = [podWorkersView, podTracesView, serviceRulesView, nodeRoutesView, networkProbesView, nodeCallsView]
