/** ComputeHash and HashControllerRevision of Kubernetes v1.36.3 gave these hashes, after a round trip of the template through protobuf. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { podTemplateHash } from './podTemplateHash.ts'
import { revisionData, revisionDataHash } from './revisionData.ts'

interface Case {
  readonly name: string
  readonly template: object
  readonly hash: string
  readonly afterThreeCollisions: string
  readonly revision: string
}

const cases: readonly Case[] = [
  {
    name: "a template with the API's defaults",
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        containers: [
          {
            name: 'web',
            image: 'nginx:1.29',
            resources: {},
            terminationMessagePath: '/dev/termination-log',
            terminationMessagePolicy: 'File',
            imagePullPolicy: 'IfNotPresent',
          },
        ],
        restartPolicy: 'Always',
        terminationGracePeriodSeconds: 30,
        dnsPolicy: 'ClusterFirst',
        securityContext: {},
        schedulerName: 'default-scheduler',
      },
    },
    hash: '66db7fc774',
    afterThreeCollisions: '57fd9b9485',
    revision: '6779bb9f5',
  },
  {
    name: 'a template with hardly any field',
    template: { metadata: {}, spec: { containers: null } },
    hash: '85748b7f68',
    afterThreeCollisions: '7c87ffd547',
    revision: '56fdcc77f7',
  },
  {
    name: 'a template with fields of every Go type',
    template: {
      metadata: { labels: { '10': 'a', '2': 'b', app: '<é&😀>' }, annotations: { 'a/b': 'x y\n"z"' } },
      spec: {
        volumes: [
          { name: 'v', emptyDir: { medium: 'Memory', sizeLimit: '8Gi' } },
          {
            name: 'p',
            projected: {
              sources: [
                { configMap: { name: 'c', items: [{ key: 'k', path: 'p', mode: 288 }] } },
                {
                  downwardAPI: {
                    items: [
                      { path: 'l', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.labels' } },
                      { path: 'm', resourceFieldRef: { resource: 'limits.cpu', divisor: '0' } },
                    ],
                  },
                },
              ],
              defaultMode: 420,
            },
          },
        ],
        containers: [
          {
            name: 'c',
            image: 'i',
            args: ['-c', 'true'],
            ports: [{ name: 'http', containerPort: 80, protocol: 'TCP' }],
            env: [{ name: 'E' }, { name: 'F', value: '$(E)' }, { name: 'G', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: true } } }],
            resources: { limits: { cpu: '1500m', memory: '64Mi', 'x.io/d': '3' }, requests: { cpu: '100m', memory: '3Mi' } },
            livenessProbe: {
              httpGet: { path: '/', port: 'http', scheme: 'HTTP' },
              timeoutSeconds: 1,
              periodSeconds: 10,
              successThreshold: 1,
              failureThreshold: 3,
            },
            readinessProbe: { tcpSocket: { port: 80 } },
            lifecycle: { preStop: { sleep: { seconds: 3 } } },
            securityContext: { runAsNonRoot: false, capabilities: { drop: ['ALL'] } },
          },
        ],
        hostNetwork: true,
        affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{}] } } },
        tolerations: [{ operator: 'Exists', tolerationSeconds: 0 }],
        overhead: { memory: '120Ti' },
        topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels: { app: 'web' } } }],
      },
    },
    hash: '85f545bcd8',
    afterThreeCollisions: '584c866575',
    revision: '687544b74b',
  },
]
for (const { name, template, hash, afterThreeCollisions } of cases) {
  test(`CTL-04 the hash of ${name} is upstream's`, () =>
    assert.deepEqual([podTemplateHash(template), podTemplateHash(template, 3)], [hash, afterThreeCollisions]))
}

test('CTL-04 the hash of a template ignores the order of members, empty lists and empty maps', () => {
  const [{ template, hash }] = cases as [Case]
  const { metadata, spec } = template as { metadata: object; spec: object }
  assert.equal(podTemplateHash({ spec: { volumes: [], nodeSelector: {}, ...spec }, metadata: { annotations: {}, ...metadata } }), hash)
})

test('CTL-05 the data of a revision begins with the directive, and its members are sorted', () => {
  const template = { spec: { b: [{ d: 1, c: 2 }], a: 'x' }, metadata: {} }
  assert.equal(
    JSON.stringify(revisionData({ spec: { template } })),
    '{"spec":{"template":{"$patch":"replace","metadata":{},"spec":{"a":"x","b":[{"c":2,"d":1}]}}}}',
  )
})

for (const { name, template, revision } of cases) {
  test(`CTL-05 the hash of a revision with ${name} is upstream's`, () => assert.equal(revisionDataHash(revisionData({ spec: { template } }), 0), revision))
}
