import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, PersistentVolumeClaimTemplate, Pod, PodSpec, PodStatus, Volume } from '#api/gen/types/core.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { isLabelValue } from '#api/machinery/names'
import { deepCopy } from '#base/frozen'
import { seededRandom } from '#base/random'
import { setPodDefaults } from './defaults.ts'
import { pod } from './pod.ts'
import { podTemplateWarnings, podWarnings } from './warnings.ts'

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }
const texts = (errors: readonly { field: string; body: string }[] = []) => errors.map((error) => `${error.field}: ${error.body}`)
const c = (rest: Partial<Container> = {}): Container => ({ name: 'c', image: 'i', ...rest })

function subject(spec: object = {}, status: PodStatus = {}, annotations?: Record<string, string>): Pod {
  const metadata = { name: 'p', ...(annotations ? { annotations } : {}) }
  const made = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [c()], serviceAccountName: 'default', ...deepCopy(spec) }, status } as Pod
  setPodDefaults(made)
  return made
}
const faultsOf = (spec: object, annotations?: Record<string, string>) => texts(pod.validate?.({ obj: subject(spec, {}, annotations), path, context }))

const volumes: [name: string, source: Omit<Volume, 'name'>, want: string[]][] = [
  [
    'gcePersistentDisk',
    { gcePersistentDisk: { pdName: '', partition: 256 } },
    ['pdName: Required value', 'partition: Invalid value: 256: must be between 1 and 255, inclusive'],
  ],
  ['awsElasticBlockStore', { awsElasticBlockStore: { volumeID: '' } }, ['volumeID: Required value']],
  ['nfs', { nfs: { server: 's', path: 'x' } }, ['path: Invalid value: "x": must be an absolute path']],
  ['glusterfs', { glusterfs: { endpoints: '', path: '' } }, ['endpoints: Required value', 'path: Required value']],
  ['nfs', { nfs: { server: '', path: '' } }, ['server: Required value', 'path: Required value', 'path: Invalid value: "": must be an absolute path']],
  ['iscsi', { iscsi: { targetPortal: 't', iqn: 'iqn.2001-04.com.example:disk', lun: 0, initiatorName: `eui.${'a'.repeat(16)}` } }, []],
  [
    'iscsi',
    { iscsi: { targetPortal: 't', iqn: 'iqn.2001-04', lun: 0, initiatorName: 'naa.1' } },
    ['iqn: Invalid value: "iqn.2001-04": must be valid format', 'initiatorname: Invalid value: "naa.1": must be valid format'],
  ],
  [
    'flexVolume',
    { flexVolume: { driver: 'd', options: { 'mine.example.com/a': 'b', 'K8s.io/a': 'b' } } },
    ['options[K8s.io/a]: Invalid value: "K8s.io/a": kubernetes.io and k8s.io namespaces are reserved'],
  ],
  ['flocker', { flocker: {} }, [': Required value: one of datasetName and datasetUUID is required']],
  ['rbd', { rbd: { monitors: [], image: '' } }, ['monitors: Required value', 'image: Required value']],
  ['cinder', { cinder: { volumeID: 'v', secretRef: {} } }, ['secretRef.name: Required value']],
  ['quobyte', { quobyte: { registry: 'r', volume: 'v' } }, ['registry: Invalid value: "r": must be a host:port pair or multiple pairs separated by commas']],
  ['fc', { fc: { targetWWNs: ['w'] } }, ['lun: Required value: lun is required if targetWWNs is specified']],
  [
    'iscsi',
    { iscsi: { targetPortal: 't', iqn: 'x', lun: 256, chapAuthSession: true } },
    [
      'iqn: Invalid value: "x": must be valid format starting with iqn, eui, or naa',
      'lun: Invalid value: 256: must be between 0 and 255, inclusive',
      'secretRef: Required value',
    ],
  ],
  [
    'azureDisk',
    { azureDisk: { diskName: 'd', diskURI: 'x', kind: 'Managed' } },
    ['diskURI: Unsupported value: "x": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"'],
  ],
  ['scaleIO', { scaleIO: { gateway: 'g', system: 's', secretRef: { name: 's' } } }, ['volumeName: Required value']],
  ['storageos', { storageos: {} }, ['volumeName: Required value']],
  ['csi', { csi: { driver: 'd', nodePublishSecretRef: {} } }, ['nodePublishSecretRef.name: Required value']],
  ['ephemeral', { ephemeral: {} }, ['volumeClaimTemplate: Required value']],
  [
    'ephemeral',
    { ephemeral: { volumeClaimTemplate: {} as PersistentVolumeClaimTemplate } },
    ['volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required', 'volumeClaimTemplate.spec.resources[storage]: Required value'],
  ],
  [
    'ephemeral',
    { ephemeral: { volumeClaimTemplate: { metadata: { name: 'n' }, spec: { accessModes: ['Odd'] } } } },
    [
      'volumeClaimTemplate.metadata.name: Forbidden: cannot be set for an ephemeral volume',
      'volumeClaimTemplate.spec.accessModes: Unsupported value: "Odd": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
      'volumeClaimTemplate.spec.resources[storage]: Required value',
    ],
  ],
  ['gitRepo', { gitRepo: { repository: 'r', directory: '/x' } }, ['directory: Invalid value: "/x": must be a relative path']],
]
for (const [name, source, want] of volumes) {
  test(`API-17 pod volume: ${name}`, () => {
    const prefix = `spec.volumes[0].${name}`
    assert.deepEqual(
      faultsOf({ volumes: [{ name: 'v', ...source }] }),
      want.map((text) => (text.startsWith(':') ? prefix + text : `${prefix}.${text}`)),
    )
  })
}

const projected = (source: object) => ({ volumes: [{ name: 'v', projected: { sources: [source] } }] })
const at = 'spec.volumes[0].projected.sources[0]'
const onNode = (term: object) => ({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } } })
const nearPods = (term: object) => ({ affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } })
const near = 'spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]'
const cases: [name: string, spec: object, want: string[]][] = [
  ['good', {}, []],
  [
    'a token',
    projected({ serviceAccountToken: { path: '../x', expirationSeconds: 60 } }),
    [
      `${at}.serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes`,
      `${at}.serviceAccountToken.path: Invalid value: "../x": must not contain '..'`,
    ],
  ],
  [
    'a token of a pod without a service account',
    { serviceAccountName: '', ...projected({ serviceAccountToken: { path: 't' } }) },
    [`${at}.serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set`],
  ],
  [
    'a trust bundle',
    projected({ clusterTrustBundle: { path: 'b' } }),
    [`${at}.clusterTrustBundle: Required value: either name or signerName must be specified`],
  ],
  [
    'a certificate',
    projected({ podCertificate: { keyType: 'X', signerName: 's' } }),
    [
      `${at}.podCertificate.signerName: Invalid value: "s": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
      `${at}.podCertificate.keyType: Unsupported value: "X": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"`,
      `${at}.podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath`,
    ],
  ],
  [
    'a certificate that lives too long, with an annotation without a domain, and one file for two things',
    projected({
      podCertificate: {
        ...{ keyType: 'ED25519', signerName: 'kubernetes.io/x', maxExpirationSeconds: 90_000, userAnnotations: { Plain: 'a' } },
        ...{ keyPath: 'k', certificateChainPath: 'k' },
      },
    }),
    [
      `${at}.podCertificate.userAnnotations: Invalid value: "plain": must be a domain-prefixed key (such as "acme.io/foo")`,
      `${at}.podCertificate.maxExpirationSeconds: Invalid value: 90000: if provided, maxExpirationSeconds must be <= 86400`,
      'spec.volumes[0].projected: Invalid value: "k": conflicting duplicate paths',
    ],
  ],
  [
    'resource claims',
    { resourceClaims: [{ name: 'a' }, { name: 'a', resourceClaimName: 'x' }] },
    [
      'spec.resourceClaims[0]: Invalid value: {"name":"a"}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`',
      'spec.resourceClaims[1].name: Duplicate value: "a"',
    ],
  ],
  [
    'restart rules',
    { containers: [c({ restartPolicyRules: [{ action: 'Wait' }] })] },
    [
      'spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used',
      'spec.containers[0].restartPolicyRules[0].action: Unsupported value: "Wait": supported values: "Restart", "RestartAllContainers"',
      'spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified',
    ],
  ],
  ['a padded image', { containers: [c({ image: ' i' })] }, ['spec.containers[0].image: Invalid value: " i": must not have leading or trailing whitespace']],
  [
    'a device that steps back',
    { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'x' } }], containers: [c({ volumeDevices: [{ name: 'v', devicePath: '/a/..' }] })] },
    ['spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/a/..": can not contain backsteps (\'..\')'],
  ],
  [
    'sysctls of the host',
    { hostNetwork: true, securityContext: { sysctls: [{ name: 'net/ipv4/x', value: '1' }] } },
    ['spec.securityContext.sysctls[0].name: Invalid value: "net/ipv4/x": may not be specified when \'hostNetwork\' is true'],
  ],
  [
    'a sysctl',
    { securityContext: { sysctls: [{ name: 'A', value: '1' }] } },
    [
      'spec.securityContext.sysctls[0].name: Invalid value: "A": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$',
    ],
  ],
  [
    'SELinux',
    { securityContext: { seLinuxChangePolicy: 'MountOption' } },
    ['spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive"'],
  ],
  [
    'seccomp',
    { securityContext: { seccompProfile: { type: 'Mine' } } },
    ['spec.securityContext.seccompProfile.type: Unsupported value: "Mine": supported values: "Localhost", "RuntimeDefault", "Unconfined"'],
  ],
  [
    'AppArmor',
    { securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: ' x' } } },
    ['spec.securityContext.appArmorProfile.localhostProfile: Invalid value: " x": must not be padded with whitespace'],
  ],
  ['users of Windows', { securityContext: { windowsOptions: { runAsUserName: 'example.com\\user' } } }, []],
  ...(
    [
      ['\\user', "runAsUserName's Domain doesn't match the NetBios nor the DNS format"],
      ['domain\\', "runAsUserName's User cannot be empty"],
      ['u'.repeat(105), "runAsUserName's User length must not be longer than 104 characters"],
      ['. .', "runAsUserName's User cannot contain only periods or spaces"],
      ['a@b', 'runAsUserName\'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]'],
    ] as const
  ).map(([runAsUserName, fault]): (typeof cases)[number] => [
    `the Windows user ${runAsUserName}`,
    { securityContext: { windowsOptions: { runAsUserName } } },
    [`spec.securityContext.windowsOptions.runAsUserName: Invalid value: ${JSON.stringify(runAsUserName)}: ${fault}`],
  ]),
  ['an unknown system', { os: { name: 'plan9' } }, ['spec.os: Unsupported value: "plan9": supported values: "linux", "windows"']],
  ['no system', { os: { name: '' } }, ['spec.os.name: Required value: cannot be empty']],
  [
    'host processes',
    { securityContext: { windowsOptions: { hostProcess: true } } },
    ['spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers'],
  ],
  [
    'windows',
    { os: { name: 'windows' }, hostUsers: true, securityContext: { fsGroup: 1 }, containers: [c({ securityContext: { privileged: false } })] },
    [
      'spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod',
      'spec.hostUsers: Forbidden: cannot be set for a windows pod',
      'spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod',
    ],
  ],
  [
    'linux',
    { os: { name: 'linux' }, containers: [c({ securityContext: { windowsOptions: {} } })] },
    ['spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod'],
  ],
  ['overhead', { overhead: { cpu: '-1' } }, ['spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0']],
  [
    'pod-level names',
    { resources: { limits: { 'ephemeral-storage': '1' } } },
    ['spec.resources.limits[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: "cpu", "hugepages-", "memory"'],
  ],
  [
    'pod-level limits',
    { resources: { limits: { cpu: '1' } }, containers: [c({ resources: { limits: { cpu: '2' }, requests: { cpu: '1' } } })] },
    ['spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 1'],
  ],
  [
    'a toleration',
    { tolerations: [{ key: 'a', operator: 'Exists', value: 'x' }] },
    ['spec.tolerations[0].operator: Invalid value: "x": value must be empty when `operator` is \'Exists\''],
  ],
  [
    'a node field',
    onNode({ matchFields: [{ key: 'spec.x', operator: 'Exists' }] }),
    [
      'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].operator: Invalid value: "Exists": not a valid selector operator',
      'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "spec.x": not a valid field selector key',
    ],
  ],
  [
    'label keys',
    nearPods({ topologyKey: 'a', labelSelector: {}, matchLabelKeys: ['k'], mismatchLabelKeys: ['k'] }),
    [`${near}.matchLabelKeys[0]: Invalid value: "k": exists in both matchLabelKeys and mismatchLabelKeys`],
  ],
  [
    'label keys of no selector',
    nearPods({ topologyKey: 'a', matchLabelKeys: ['k'] }),
    [`${near}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set`],
  ],
]
for (const [name, spec, want] of cases) test(`API-17 pod validation: ${name}`, () => assert.deepEqual(faultsOf(spec), want))

test('API-17 pod annotations: deletion cost and mirrors', () => {
  const cost = 'controller.kubernetes.io/pod-deletion-cost'
  assert.deepEqual(faultsOf({}, { [cost]: '1e3' }), [`metadata.annotations[${cost}]: Invalid value: "1e3": must be a 32bit integer`])
  assert.deepEqual(faultsOf({}, { [cost]: '-100' }), [])
  const update = texts(
    pod.validateUpdate?.({ obj: subject({ nodeName: 'n' }, {}, { 'kubernetes.io/config.mirror': 'x' }), old: subject({ nodeName: 'n' }), path, context }),
  )
  assert.deepEqual(update, ['metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation'])
})

test('API-17 a gated pod may be steered into fewer places only', () => {
  const gates = { schedulingGates: [{ name: 'g' }] }
  const term = { matchExpressions: [{ key: 'a', operator: 'Exists' }] }
  const more = { matchExpressions: [...term.matchExpressions, { key: 'b', operator: 'Exists' }] }
  const update = (before: object, after: object) =>
    texts(pod.validateUpdate?.({ obj: subject({ ...gates, ...after }), old: subject({ ...gates, ...before }), path, context }))
  assert.deepEqual(update({ nodeSelector: { a: 'b' } }, { nodeSelector: { a: 'b', c: 'd' } }), [])
  assert.deepEqual(update({ nodeSelector: { a: 'b' } }, { nodeSelector: { a: 'c' } }), [
    'spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)',
  ])
  assert.deepEqual(update({}, onNode(term)), [])
  assert.deepEqual(update(onNode(term), onNode(more)), [])
  const terms = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'
  assert.match(update(onNode(more), onNode(term))[0] ?? '', new RegExp(`^${terms}\\[0\\]: .*: only additions are allowed`))
  assert.match(update(onNode(term), {})[0] ?? '', new RegExp(`^${terms}: .*: no additions/deletions to non-empty NodeSelectorTerms list are allowed`))
})

const ended = (name: string, exitCode: number) => ({ name, image: '', imageID: '', ready: false, restartCount: 0, state: { terminated: { exitCode } } })
const running = (name: string) => ({ ...ended(name, 0), state: { running: {} } })
const statuses: [name: string, spec: object, before: PodStatus, after: PodStatus, want: string[]][] = [
  [
    'an ended container stays ended',
    { restartPolicy: 'Never' },
    { containerStatuses: [ended('c', 1)] },
    { containerStatuses: [running('c')] },
    ['status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state'],
  ],
  ['a failed one may start again', { restartPolicy: 'OnFailure' }, { containerStatuses: [ended('c', 1)] }, { containerStatuses: [running('c')] }, []],
  [
    'so may one with its own policy',
    { restartPolicy: 'Never', containers: [c({ restartPolicy: 'Always' })] },
    { containerStatuses: [ended('c', 0)] },
    { containerStatuses: [running('c')] },
    [],
  ],
  [
    'an ephemeral one never',
    {},
    { ephemeralContainerStatuses: [ended('d', 1)] },
    { ephemeralContainerStatuses: [running('d')] },
    ['status.ephemeralContainerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state'],
  ],
  [
    'addresses',
    {},
    {},
    { podIPs: [{ ip: '10.0.0.1' }, { ip: '10.0.0.1' }] },
    [
      'status.podIPs: Invalid value: [{"ip":"10.0.0.1"},{"ip":"10.0.0.1"}]: may specify no more than one IP for each IP family',
      'status.podIPs[1]: Duplicate value: {"ip":"10.0.0.1"}',
    ],
  ],
  [
    'host addresses',
    {},
    {},
    { hostIP: '10.0.0.1', hostIPs: [{ ip: '10.0.0.2' }] },
    ['status.hostIPs[0].ip: Invalid value: "10.0.0.2": must be equal to `hostIP`'],
  ],
  [
    'claims',
    {},
    {},
    { resourceClaimStatuses: [{ name: 'x' }] },
    ['status.resourceClaimStatuses[0].name: Invalid value: "x": must match the name of an entry in `spec.resourceClaims`'],
  ],
  [
    'DRA-05 the claim for extended resources',
    {},
    {},
    { extendedResourceClaimStatus: { resourceClaimName: '', requestMappings: [{ containerName: 'x', resourceName: 'a/b', requestName: 'r' }] } },
    [
      'status.extendedResourceClaimStatus.requestMappings[0].containerName: Invalid value: "x": must match the name of an entry in spec.initContainers.name or spec.containers.name',
      'status.extendedResourceClaimStatus.resourceClaimName: Required value',
    ],
  ],
  ['the quality of service', {}, { qosClass: 'Burstable' }, { qosClass: 'BestEffort' }, ['status.qosClass: Invalid value: "BestEffort": field is immutable']],
  [
    'conditions',
    {},
    {},
    { conditions: [{ type: 'Ready', status: 'Maybe' }] },
    ['metadata.conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"'],
  ],
]
for (const [name, spec, before, after, want] of statuses) {
  test(`API-17 pod status: ${name}`, () =>
    assert.deepEqual(texts(pod.status?.validateUpdate?.({ obj: subject(spec, after), old: subject(spec, before), path, context })), want))
}

const warned: [name: string, spec: object, want: string[]][] = [
  [
    'an old label',
    { nodeSelector: { 'beta.kubernetes.io/os': 'linux' } },
    ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'],
  ],
  [
    'a spread that matches nothing',
    { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'a', whenUnsatisfiable: 'DoNotSchedule' }] },
    ['spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod'],
  ],
  [
    'a preference that no label meets',
    {
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, preference: { matchExpressions: [{ key: 'a', operator: 'In', values: ['-', 'b'] }] } },
          ],
        },
      },
    },
    isLabelValue('-').map(
      (fault) =>
        `spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values[0]: - is invalid, ${fault}`,
    ),
  ],
  [
    'addresses in other spellings',
    { dnsConfig: { nameservers: ['2001:DB8::1'] }, hostAliases: [{ ip: 'FD00::1' }] },
    [
      'spec.dnsConfig.nameservers[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")',
      'spec.hostAliases[0].ip: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")',
    ],
  ],
  [
    'a claim of half a byte',
    { volumes: [{ name: 'v', ephemeral: { volumeClaimTemplate: { spec: { resources: { requests: { storage: '100m' } } } } } }] },
    ['spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value "100m" is invalid, must be an integer'],
  ],
  [
    'a port of one address that no node has open',
    { containers: [c({ ports: [{ containerPort: 80, hostIP: '10.0.0.1' }] })] },
    ['spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:10.0.0.1}'],
  ],
  [
    'a name for two ports',
    { containers: [c({ ports: [{ containerPort: 80, name: 'web' }] }), c({ name: 'd', ports: [{ containerPort: 81, name: 'web' }] })] },
    [
      'spec.containers[1].ports[0]: duplicate port name "web" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]',
    ],
  ],
  ['an affinity that matches nothing', nearPods({ topologyKey: 'a' }), [`${near}.labelSelector: a null labelSelector results in matching no pod`]],
  [
    'a volume that is gone',
    { volumes: [{ name: 'v', glusterfs: { endpoints: 'e', path: 'p' } }] },
    ['spec.volumes[0].glusterfs: deprecated in v1.25, non-functional in v1.26+'],
  ],
  [
    'files over files',
    {
      volumes: [
        {
          name: 'v',
          configMap: {
            name: 'm',
            items: [
              { key: 'a', path: 'x' },
              { key: 'b', path: 'x/y' },
            ],
          },
        },
      ],
    },
    ['volume "v" (ConfigMap "m"): overlapping paths: "x/y" with "x"'],
  ],
  [
    'neighbours that are not',
    {
      volumes: [
        {
          name: 'v',
          configMap: {
            name: 'm',
            items: [
              { key: 'a', path: 'x' },
              { key: 'b', path: 'xy' },
            ],
          },
        },
      ],
    },
    [],
  ],
  [
    'half a byte',
    { containers: [c({ resources: { limits: { memory: '100m' } } })] },
    [
      'spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an integer',
      'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer',
    ],
  ],
  ['aliases twice', { hostAliases: [{ ip: '1.1.1.1' }, { ip: '1.1.1.1' }] }, ['spec.hostAliases[1].ip: duplicate ip "1.1.1.1"']],
  [
    'ambiguous ports',
    {
      containers: [
        c({
          ports: [
            { containerPort: 1, hostPort: 2 },
            { containerPort: 1, hostPort: 2, hostIP: '1.1.1.1' },
          ],
        }),
      ],
    },
    ['spec.containers[0].ports[1]: dangerously ambiguous port definition with spec.containers[0].ports[0]'],
  ],
  [
    'a negative grace',
    { terminationGracePeriodSeconds: -1 },
    ['spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1'],
  ],
]
for (const [name, spec, want] of warned) test(`API-17 pod warnings: ${name}`, () => assert.deepEqual(podWarnings(subject(spec)), want))

test('API-17 templates are warned about annotations that fields have replaced', () => {
  const key = 'container.apparmor.security.beta.kubernetes.io/c'
  const template = { metadata: { annotations: { [key]: 'unconfined' } }, spec: { containers: [c()] } as PodSpec }
  assert.deepEqual(podTemplateWarnings(template, FieldPath.of('spec', 'template')), [
    `spec.template.metadata.annotations[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`,
  ])
  assert.deepEqual(podWarnings(subject({}, {}, { [key]: 'unconfined' })), [])
})
