/** Which flags of the controllers and the scheduler a local cluster takes (L5): it has no use for those of ports and connections. */
import { controllerOptions } from './controllers.ts'
import { componentFeatures } from './features.ts'
import { leaderElection } from './leaderElection.ts'
import { schedulerOptions } from './scheduler.ts'
import { signing } from './signing.ts'
import { volumeOptions } from './volumes.ts'

export const localControllerGroups = {
  controllers: controllerOptions,
  volumes: volumeOptions,
  signing,
  lease: leaderElection('kube-controller-manager'),
  features: componentFeatures,
} as const
export const localSchedulerGroups = { scheduler: schedulerOptions, lease: leaderElection('kube-scheduler'), features: componentFeatures } as const
