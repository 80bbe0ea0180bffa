import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodSpec } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { controls } from './controls/index.ts'
import { createEvaluator, detailsOf } from './evaluate.ts'
import type { Level, LevelVersion } from './policy.ts'

const evaluate = createEvaluator(controls)

/** Right for restricted:latest; a case changes it. */
const securityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
const goodPod = { securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } } }
const container = (more: object = {}, context: object = {}, name = 'a') => ({ name, image: 'i', securityContext: { ...securityContext, ...context }, ...more })
const pod = (...containers: object[]) => ({ ...goodPod, containers })
const podWith = (context: object) => ({ ...pod(container()), securityContext: { ...goodPod.securityContext, ...context } })

const verdict = (level: Level, version: LevelVersion['version'], spec: object, annotations: Record<string, string> = {}) =>
  detailsOf(evaluate({ level, version }, { annotations }, spec as Frozen<PodSpec>))

test('a pod as restricted wants it passes every version', () => {
  const all = ['latest', ...Array.from({ length: 38 }, (_, minor) => minor)] as LevelVersion['version'][]
  assert.deepEqual(
    all.map((version) => verdict('restricted', version, pod(container()))),
    all.map(() => ''),
  )
})

interface Case {
  readonly control: string
  readonly level: Level
  readonly version?: LevelVersion['version']
  readonly spec: object
  readonly annotations?: Record<string, string>
  readonly text: string
}

const bare = { containers: [{ name: 'a', image: 'i' }] }
const cases: readonly Case[] = [
  {
    control: 'everything restricted asks of a plain pod',
    level: 'restricted',
    spec: bare,
    text: 'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  },
  {
    control: 'v1.0 asked less',
    level: 'restricted',
    version: 0,
    spec: bare,
    text: 'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)',
  },
  { control: 'baseline takes a plain pod', level: 'baseline', spec: bare, text: '' },
  { control: 'privileged takes anything', level: 'privileged', spec: { ...bare, hostPID: true }, text: '' },
  {
    control: 'baseline names all who break it, its controls in order',
    level: 'baseline',
    spec: { ...pod(container({}, { privileged: true }), container({}, { privileged: true }, 'b')), hostPID: true, hostNetwork: true },
    text: 'host namespaces (hostNetwork=true, hostPID=true), privileged (containers "a", "b" must not set securityContext.privileged=true)',
  },
  {
    control: 'allowPrivilegeEscalation, also of debugging containers',
    level: 'restricted',
    spec: { ...pod(container()), ephemeralContainers: [container({}, { allowPrivilegeEscalation: true }, 'debug')] },
    text: 'allowPrivilegeEscalation != false (container "debug" must set securityContext.allowPrivilegeEscalation=false)',
  },
  {
    control: 'pods for Windows are exempt since v1.25',
    level: 'restricted',
    spec: { ...bare, os: { name: 'windows' }, securityContext: { runAsNonRoot: true } },
    text: '',
  },
  {
    control: 'appArmorProfile',
    level: 'baseline',
    spec: { ...podWith({ appArmorProfile: { type: 'Unconfined' } }), containers: [container({}, { appArmorProfile: { type: 'Other' } })] },
    annotations: { 'container.apparmor.security.beta.kubernetes.io/a': 'unconfined', 'container.apparmor.security.beta.kubernetes.io/b': 'localhost/x' },
    text: 'forbidden AppArmor profiles (pod and container "a" and annotation must not set AppArmor profile type to "Other", "Unconfined", "container.apparmor.security.beta.kubernetes.io/a="unconfined"")',
  },
  {
    control: 'capabilities_baseline',
    level: 'baseline',
    spec: pod(container({}, { capabilities: { add: ['SYS_ADMIN', 'CHOWN', 'NET_RAW'] } })),
    text: 'non-default capabilities (container "a" must not include "NET_RAW", "SYS_ADMIN" in securityContext.capabilities.add)',
  },
  {
    control: 'capabilities_restricted, instead of baseline’s',
    level: 'restricted',
    spec: pod(container({}, { capabilities: { add: ['CHOWN', 'NET_BIND_SERVICE'] } })),
    text: 'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]; container "a" must not include "CHOWN" in securityContext.capabilities.add)',
  },
  {
    control: 'before v1.22 baseline’s was all',
    level: 'restricted',
    version: 21,
    spec: pod(container({}, { capabilities: { add: ['NET_RAW'] } })),
    text: 'non-default capabilities (container "a" must not include "NET_RAW" in securityContext.capabilities.add)',
  },
  { control: 'hostIPC', level: 'baseline', spec: { ...pod(container()), hostIPC: true }, text: 'host namespaces (hostIPC=true)' },
  {
    control: 'hostPathVolumes',
    level: 'baseline',
    spec: {
      ...pod(container()),
      volumes: [
        { name: 'v', hostPath: { path: '/' } },
        { name: 'w', hostPath: { path: '/' } },
        { name: 'x', nfs: {} },
      ],
    },
    text: 'hostPath volumes (volumes "v", "w")',
  },
  {
    control: 'hostPorts',
    level: 'baseline',
    spec: pod(container({ ports: [{ hostPort: 80 }, { hostPort: 0 }] }), container({ ports: [{ hostPort: 8080 }] }, {}, 'b')),
    text: 'hostPort (containers "a", "b" use hostPorts 80, 8080)',
  },
  {
    control: 'hostProbesAndHostLifecycle',
    level: 'baseline',
    spec: pod(container({ livenessProbe: { httpGet: { host: '1.2.3.4' } }, lifecycle: { preStop: { tcpSocket: { host: 'h' } } } })),
    text: 'probe or lifecycle host (container "a" uses probe or lifecycle hosts "1.2.3.4", "h")',
  },
  { control: 'hosts of probes before v1.34', level: 'baseline', version: 33, spec: pod(container({ livenessProbe: { httpGet: { host: 'h' } } })), text: '' },
  {
    control: 'procMount',
    level: 'baseline',
    spec: pod(container({}, { procMount: 'Unmasked' })),
    text: 'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
  },
  { control: 'procMount in a user namespace', level: 'baseline', spec: { ...pod(container({}, { procMount: 'Unmasked' })), hostUsers: false }, text: '' },
  {
    control: 'procMount_restricted',
    level: 'restricted',
    spec: { ...pod(container({}, { procMount: 'Unmasked' })), hostUsers: false },
    text: 'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
  },
  {
    control: 'restrictedVolumes, instead of hostPathVolumes',
    level: 'restricted',
    spec: {
      ...pod(container()),
      volumes: [{ name: 'v', hostPath: {} }, { name: 'w', nfs: {} }, { name: 'x', emptyDir: {} }, { name: 'y' }, { name: 'z', image: {} }],
    },
    text: 'restricted volume types (volumes "v", "w", "y" use restricted volume types "hostPath", "nfs", "unknown")',
  },
  {
    control: 'runAsNonRoot said to be false',
    level: 'restricted',
    spec: { ...podWith({ runAsNonRoot: false }), containers: [container({}, { runAsNonRoot: false }), container({}, { runAsNonRoot: true }, 'b')] },
    text: 'runAsNonRoot != true (pod and container "a" must not set securityContext.runAsNonRoot=false)',
  },
  { control: 'root of a user namespace', level: 'restricted', spec: { ...podWith({ runAsNonRoot: undefined, runAsUser: 0 }), hostUsers: false }, text: '' },
  {
    control: 'runAsUser',
    level: 'restricted',
    spec: { ...podWith({ runAsUser: 0 }), containers: [container({}, { runAsUser: 0 })] },
    text: 'runAsUser=0 (pod and container "a" must not set runAsUser=0)',
  },
  { control: 'runAsUser before v1.23', level: 'restricted', version: 22, spec: podWith({ runAsUser: 0 }), text: '' },
  {
    control: 'seLinuxOptions',
    level: 'baseline',
    spec: { ...podWith({ seLinuxOptions: { type: 'spc_t', role: 'r' } }), containers: [container({}, { seLinuxOptions: { user: 'u' } })] },
    text: 'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set; role may not be set)',
  },
  { control: 'seLinuxOptions that are fine', level: 'baseline', spec: podWith({ seLinuxOptions: { type: 'container_engine_t', level: 's0' } }), text: '' },
  {
    control: 'a type before its version',
    level: 'baseline',
    version: 30,
    spec: podWith({ seLinuxOptions: { type: 'container_engine_t' } }),
    text: 'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "container_engine_t")',
  },
  {
    control: 'seccompProfile_baseline',
    level: 'baseline',
    spec: { ...podWith({ seccompProfile: { type: 'Unconfined' } }), containers: [container({}, { seccompProfile: { type: 'Unconfined' } })] },
    text: 'seccompProfile (pod and container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
  },
  {
    control: 'seccompProfile_baseline by annotation, before v1.19',
    level: 'baseline',
    version: 18,
    spec: bare,
    annotations: { 'seccomp.security.alpha.kubernetes.io/pod': 'unconfined', 'container.seccomp.security.alpha.kubernetes.io/a': 'docker/default' },
    text: 'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")',
  },
  {
    control: 'seccompProfile_restricted of one container',
    level: 'restricted',
    spec: { ...podWith({ seccompProfile: undefined }), containers: [container({}, { seccompProfile: { type: 'Localhost' } }), container({}, {}, 'b')] },
    text: 'seccompProfile (pod or container "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  },
  {
    control: 'sysctls',
    level: 'baseline',
    spec: podWith({ sysctls: [{ name: 'kernel.msgmax' }, { name: 'net.ipv4.tcp_rmem' }, { name: 'net.ipv4.tcp_slow_start_after_idle' }] }),
    text: 'forbidden sysctls (kernel.msgmax, net.ipv4.tcp_slow_start_after_idle)',
  },
  {
    control: 'sysctls before their version',
    level: 'baseline',
    version: 31,
    spec: podWith({ sysctls: [{ name: 'net.ipv4.tcp_rmem' }] }),
    text: 'forbidden sysctls (net.ipv4.tcp_rmem)',
  },
  {
    control: 'windowsHostProcess',
    level: 'baseline',
    spec: { ...podWith({ windowsOptions: { hostProcess: true } }), containers: [container({}, { windowsOptions: { hostProcess: true } })] },
    text: 'hostProcess (pod and container "a" must not set securityContext.windowsOptions.hostProcess=true)',
  },
]

for (const { control, level, version = 'latest', spec, annotations, text } of cases) {
  test(`ADM-08 ${level}:${version} ${control}`, () => assert.equal(verdict(level, version, spec, annotations), text))
}

test('every control has a name of its own, and its versions ascend', () => {
  const ids = controls.map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length)
  for (const { revisions } of controls) {
    const since = revisions.map((one) => one.since)
    assert.deepEqual(
      since,
      [...since].sort((a, b) => a - b),
    )
  }
})
