/** What a KubeSchedulerConfiguration may contain (L3). Upstream: kube-scheduler/config/v1/types.go, types_pluginargs.go; component-base config/v1alpha1 (v1.36). */
import type { ConfigurationKind } from '#api/configuration/decode'
import { anything, boolean, integer, kind, list, struct, text } from '#api/configuration/schemas'
import type { Schema } from '#api/schema/schema'
import { bareMap } from '#base/bareMap'
import { extensionPoints } from '../framework/profile.ts'

const integer64: Schema = { type: 'integer', format: 'int64' }
const number32: Schema = { type: 'number' }

const plugin = struct('Plugin', { name: text, weight: integer })
const pluginSet = struct('PluginSet', { enabled: list(plugin), disabled: list(plugin) })
const points = [...extensionPoints, 'multiPoint', 'placementGenerate', 'placementScore']

const profile = struct('KubeSchedulerProfile', {
  schedulerName: text,
  percentageOfNodesToScore: integer,
  plugins: struct('Plugins', Object.fromEntries(points.map((point) => [point, pluginSet]))),
  pluginConfig: list(struct('PluginConfig', { name: text, args: anything })),
})

const extender = struct('Extender', {
  ...{ urlPrefix: text, filterVerb: text, preemptVerb: text, prioritizeVerb: text, weight: integer64, bindVerb: text, enableHTTPS: boolean },
  ...{ httpTimeout: text, nodeCacheCapable: boolean, ignorable: boolean },
  tlsConfig: struct('ExtenderTLSConfig', {
    ...{ insecure: boolean, serverName: text, certFile: text, keyFile: text, caFile: text, certData: text, keyData: text, caData: text },
  }),
  managedResources: list(struct('ExtenderManagedResource', { name: text, ignoredByScheduler: boolean })),
})

export const schedulerConfigurationKinds: readonly ConfigurationKind[] = [
  {
    kind: 'KubeSchedulerConfiguration',
    apiVersions: ['kubescheduler.config.k8s.io/v1'],
    schema: kind('KubeSchedulerConfiguration', {
      ...{ parallelism: integer, percentageOfNodesToScore: integer, podInitialBackoffSeconds: integer64, podMaxBackoffSeconds: integer64 },
      ...{ enableProfiling: boolean, enableContentionProfiling: boolean, delayCacheUntilActive: boolean },
      ...{ profiles: list(profile), extenders: list(extender) },
      leaderElection: struct('LeaderElectionConfiguration', {
        ...{ leaderElect: boolean, leaseDuration: text, renewDeadline: text, retryPeriod: text, resourceLock: text },
        ...{ resourceName: text, resourceNamespace: text },
      }),
      clientConnection: struct('ClientConnectionConfiguration', {
        ...{ kubeconfig: text, acceptContentTypes: text, contentType: text, qps: number32, burst: integer },
      }),
    }),
  },
]

const resources = list(struct('ResourceSpec', { name: text, weight: integer64 }))
const shape = list(struct('UtilizationShapePoint', { utilization: integer, score: integer }))

/** By plugin. */
export const pluginArgsSchemas: Readonly<Record<string, Schema>> = bareMap({
  DefaultPreemption: kind('DefaultPreemptionArgs', { minCandidateNodesPercentage: integer, minCandidateNodesAbsolute: integer }),
  DynamicResources: kind('DynamicResourcesArgs', { filterTimeout: text, bindingTimeout: text }),
  InterPodAffinity: kind('InterPodAffinityArgs', { hardPodAffinityWeight: integer, ignorePreferredTermsOfExistingPods: boolean }),
  NodeAffinity: kind('NodeAffinityArgs', { addedAffinity: anything }),
  NodeResourcesBalancedAllocation: kind('NodeResourcesBalancedAllocationArgs', { resources }),
  NodeResourcesFit: kind('NodeResourcesFitArgs', {
    ignoredResources: list(text),
    ignoredResourceGroups: list(text),
    scoringStrategy: struct('ScoringStrategy', { type: text, resources, requestedToCapacityRatio: struct('RequestedToCapacityRatioParam', { shape }) }),
  }),
  PodTopologySpread: kind('PodTopologySpreadArgs', { defaultConstraints: anything, defaultingType: text }),
  VolumeBinding: kind('VolumeBindingArgs', { bindTimeoutSeconds: integer64, shape }),
})
