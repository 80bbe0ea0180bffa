/**
 * The Stages of those who bring none (testing): nodes become ready and say so every ten minutes, pods run within a second or five, those of Jobs end
 * after as long again, deleted pods go. An annotation `pod-ready.stage.kwok.x-k8s.io/delay` (likewise -complete, -delete) says how long instead.
 */

const node = (name: string, isReady: boolean, delay: string) => `
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: ${name} }
spec:
  resourceRef: { apiGroup: v1, kind: Node }
  selector:
    matchExpressions:
    - { key: '.status.conditions.[] | select(.type == "Ready") | .status', operator: ${isReady ? 'In' : 'NotIn'}, values: ['True'] }
${delay}
  next:
    statusTemplate: |
      {{ $now := Now }}
      phase: Running
      addresses:
      - { type: InternalIP, address: {{ NodeIP | Quote }} }
      - { type: Hostname, address: {{ NodeName | Quote }} }
      conditions:
      {{ range NodeConditions }}
      - type: {{ .type }}
        status: {{ .status | Quote }}
        reason: {{ .reason }}
        message: {{ .message | Quote }}
        lastHeartbeatTime: {{ $now | Quote }}
        lastTransitionTime: {{ or $.metadata.creationTimestamp $now | Quote }}
      {{ end }}
      {{ range $index, $field := list "capacity" "allocatable" }}
      {{ $field }}:
      {{ with index (or $.status dict) $field }}
      {{ YAML . 1 }}
      {{ else }}
        cpu: "32"
        memory: 256Gi
        ephemeral-storage: 1Ti
        pods: "110"
      {{ end }}
      {{ end }}
      nodeInfo: { operatingSystem: linux, architecture: amd64, kubeletVersion: {{ Version }}, containerRuntimeVersion: {{ printf "%s://1" Version }} }
`

const pod = (name: string, phase: string, more: string, delay: string, next: string) => `
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: ${name} }
spec:
  resourceRef: { apiGroup: v1, kind: Pod }
  selector:
    matchExpressions:
    - { key: .metadata.deletionTimestamp, operator: ${name === 'pod-delete' ? 'Exists' : 'DoesNotExist'} }
${phase === '' ? '' : `    - { key: .status.phase, operator: In, values: [${phase}] }\n`}${more}
  delay:
    ${delay}
    durationFrom: { expressionFrom: '.metadata.annotations["${name}.stage.kwok.x-k8s.io/delay"]' }
    jitterDurationFrom: { expressionFrom: '.metadata.annotations["${name}.stage.kwok.x-k8s.io/delay"]' }
  next:
${next}
`

const seconds = (least: number, most: number) => `durationMilliseconds: ${least * 1000}\n    jitterDurationMilliseconds: ${most * 1000}`

const running = `    event: { type: Normal, reason: Started, message: Started container }
    statusTemplate: |
      {{ $now := Now }}
      phase: Running
      startTime: {{ $now | Quote }}
      hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
      podIP: {{ PodIPWith .spec.nodeName (or .spec.hostNetwork false) .metadata.uid .metadata.name .metadata.namespace | Quote }}
      conditions:
      {{ range list "Initialized" "Ready" "ContainersReady" }}
      - { type: {{ . }}, status: "True", lastTransitionTime: {{ $now | Quote }} }
      {{ end }}
      {{ range .spec.readinessGates }}
      - { type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now | Quote }} }
      {{ end }}
      containerStatuses:
      {{ range .spec.containers }}
      - { name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: true, started: true, restartCount: 0, state: { running: { startedAt: {{ $now | Quote }} } } }
      {{ end }}
      initContainerStatuses:
      {{ range .spec.initContainers }}
      {{ if eq .restartPolicy "Always" }}
      - { name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: true, started: true, restartCount: 0, state: { running: { startedAt: {{ $now | Quote }} } } }
      {{ else }}
      - { name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: true, started: false, restartCount: 0, state: { terminated: { exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }} } } }
      {{ end }}
      {{ end }}`

const completed = `    statusTemplate: |
      {{ $now := Now }}
      phase: Succeeded
      conditions:
      {{ range list "Ready" "ContainersReady" }}
      - { type: {{ . }}, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now | Quote }} }
      {{ end }}
      containerStatuses:
      {{ range .spec.containers }}
      - { name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: false, started: false, restartCount: 0, state: { running: null, terminated: { exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }} } } }
      {{ end }}`

export const defaultStages: string = [
  node('node-ready', false, ''),
  node('node-heartbeat', true, '  delay: { durationMilliseconds: 600000, jitterDurationMilliseconds: 610000 }'),
  pod('pod-ready', 'Pending', '', seconds(1, 5), running),
  pod('pod-complete', 'Running', "    - { key: '.metadata.ownerReferences.[].kind', operator: In, values: [Job] }", seconds(1, 5), completed),
  pod('pod-delete', '', '    - { key: .metadata.finalizers, operator: DoesNotExist }', seconds(0, 1), '    delete: true'),
].join('')
