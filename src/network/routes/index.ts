/** The ways to lead packets between nodes (L3). */
import { hostGateway } from './hostGateway.ts'
import type { RouteMode } from './routeMode.ts'
import { vxlan } from './vxlan.ts'

export const routeModes: readonly RouteMode[] = [hostGateway, vxlan]
