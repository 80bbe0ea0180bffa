/** The kind Stage as a custom resource (testing), so that kubectl and clients can make Stages while a cluster runs. */
import type { CustomResourceDefinition } from '#api/gen/types/apiextensions.v1'
import { clusterScoped } from '#client/builtIn'
import type { NewObject } from '#client/client'
import type { Stage } from './stage.ts'

export const stages = clusterScoped<Stage>('kwok.x-k8s.io', 'v1alpha1', 'stages', 'Stage')

/** Its fields are checked when it is compiled: the words then are about the field, not about a schema. */
export const stageDefinition: NewObject<CustomResourceDefinition> = {
  metadata: { name: 'stages.kwok.x-k8s.io' },
  spec: {
    group: stages.group,
    scope: 'Cluster',
    names: { kind: 'Stage', listKind: 'StageList', plural: 'stages', singular: 'stage' },
    versions: [
      {
        name: stages.version,
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: [
          { name: 'Kind', type: 'string', jsonPath: '.spec.resourceRef.kind' },
          { name: 'Weight', type: 'integer', jsonPath: '.spec.weight' },
        ],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['resourceRef'],
                properties: { resourceRef: { type: 'object', required: ['kind'], properties: { apiGroup: { type: 'string' }, kind: { type: 'string' } } } },
                'x-kubernetes-preserve-unknown-fields': true,
              },
              status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        },
      },
    ],
  },
}
