/** The registry with Kubernetes' own kinds (L3): the generic registry, the strategies of the kinds, and what some of them need of the server. */
import { strategyFor } from '#api/kinds/index'
import { type KindStorageDeps, kindStorages } from './kinds/index.ts'
import { createRegistry, type Registry, type RegistryDeps } from './registry/registry.ts'

export interface BuiltInRegistryDeps extends Omit<RegistryDeps, 'strategyFor' | 'storages'>, KindStorageDeps {}

export function createBuiltInRegistry({ serviceNetwork, eventTtlSeconds, ...deps }: BuiltInRegistryDeps): Registry {
  return createRegistry({ ...deps, strategyFor, storages: kindStorages({ ...deps, serviceNetwork, eventTtlSeconds }) })
}
