/** create with all its generators, expose, and run without a container to talk to. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { type Family, fails, says } from './steps.ts'

const data = (name: string, path = '{.data}') => `get ${name} -o jsonpath='${path}'`

export const creating: Family = {
  name: 'creating',
  prepare: async ({ dir }) => {
    await fs.writeFile(path.join(dir, 'greeting.txt'), 'hello\n')
    await fs.writeFile(path.join(dir, 'values.env'), 'A=1\nB=two\n')
    await fs.writeFile(path.join(dir, 'settings.json'), '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}')
    const openssl = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'tls.key', '-out', 'tls.crt', '-subj', '/CN=example', '-days', '1']
    execFileSync('openssl', openssl, { cwd: dir, stdio: 'ignore' })
  },
  steps: [
    // From a file and from standard input.
    says('create -f settings.json', 'configmap/settings created'),
    fails('create -f settings.json', /^Error from server \(AlreadyExists\): error when creating "settings.json": configmaps "settings" already exists/),
    says('create -f - --dry-run=server -o name', 'configmap/dry', { input: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"dry"}}' }),
    fails('get configmap dry', /NotFound/),
    says('create -f - --validate=false', 'configmap/generated-1 created', {
      input: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"generated-1"}}',
    }),

    says(
      'create clusterrole creating-reader --verb=get,list --resource=pods,deployments.apps',
      'clusterrole.rbac.authorization.k8s.io/creating-reader created',
    ),
    says(
      data('clusterrole/creating-reader', '{.rules}'),
      '[{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]},{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get","list"]}]',
    ),
    says("create clusterrole creating-urls --verb=get --non-resource-url='/logs/*'", 'clusterrole.rbac.authorization.k8s.io/creating-urls created'),
    says('create clusterrole creating-sum --aggregation-rule=sum=creating', 'clusterrole.rbac.authorization.k8s.io/creating-sum created'),
    says('label clusterrole creating-reader sum=creating', /labeled/),
    says(data('clusterrole/creating-sum', '{.rules[*].resources}'), /pods.*deployments/, { until: true }),
    says(
      'create clusterrolebinding creating-readers --clusterrole=creating-reader --user=jane --group=devs --serviceaccount=creating:default',
      'clusterrolebinding.rbac.authorization.k8s.io/creating-readers created',
    ),
    says(
      'get clusterrolebinding creating-readers -o wide',
      /ROLE +AGE +USERS +GROUPS +SERVICEACCOUNTS\n\S+ +ClusterRole\/creating-reader +\S+ +jane +devs +creating\/default/,
    ),

    says('create configmap literal --from-literal=a=1 --from-file=greeting.txt --from-file=key=greeting.txt', 'configmap/literal created'),
    says(data('configmap/literal'), '{"a":"1","greeting.txt":"hello\\n","key":"hello\\n"}'),
    says('create configmap lines --from-env-file=values.env', 'configmap/lines created'),
    says(data('configmap/lines'), '{"A":"1","B":"two"}'),
    says('create configmap preview --dry-run=client -o yaml', /^apiVersion: v1\nkind: ConfigMap\nmetadata:\n/),
    says('create configmap preview --dry-run=server', 'configmap/preview created (server dry run)'),
    fails(
      'create configmap Bad_Name',
      /The ConfigMap "Bad_Name" is invalid: metadata\.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain|Invalid value/,
    ),

    says("create cronjob tick --image=busybox --schedule='*/5 * * * *' -- date", 'cronjob.batch/tick created', { since: 21 }),
    says('get cronjob tick', /NAME +SCHEDULE +TIMEZONE +SUSPEND +ACTIVE +LAST SCHEDULE +AGE\ntick +\*\/5 \* \* \* \* +<none> +False +0 +<none> /, {
      since: 21,
    }),
    fails("create cronjob tock --image=busybox --schedule='* * *'", /spec\.schedule: Invalid value: "\* \* \*"/, { since: 21 }),
    says('create deployment web --image=nginx --replicas=2 --port=80', 'deployment.apps/web created'),
    fails('create deployment web --image=nginx', /deployments\.apps "web" already exists/),
    says('get deployment web -o wide', /NAME +READY +UP-TO-DATE +AVAILABLE +AGE +CONTAINERS +IMAGES +SELECTOR\nweb +2\/2 +2 +2 +\S+ +nginx +nginx +app=web/, {
      until: true,
    }),
    says(
      "create ingress shop --rule='shop.example/cart*=cart:8080,tls=certificate' --class=nginx --default-backend=rest:80 --annotation=a=b",
      'ingress.networking.k8s.io/shop created',
    ),
    says('get ingress shop', /NAME +CLASS +HOSTS +ADDRESS +PORTS +AGE\nshop +nginx +shop\.example +80, 443 /),
    says('create job once --image=busybox -- echo hi', 'job.batch/once created'),
    says('create job tick-now --from=cronjob/tick', 'job.batch/tick-now created', { since: 21 }),
    says(data('job/tick-now', '{.metadata.ownerReferences[0].kind} {.spec.template.spec.containers[0].command}'), 'CronJob ["date"]', { since: 23 }),
    says('get job once', /NAME +STATUS +COMPLETIONS +DURATION +AGE\nonce +Complete +1\/1 /, { until: true }),
    says('create namespace creating-team', 'namespace/creating-team created'),
    fails('create ns creating-team', /\(AlreadyExists\): namespaces "creating-team" already exists/),
    says('create poddisruptionbudget least --selector=app=web --min-available=1', 'poddisruptionbudget.policy/least created', { since: 21 }),
    says('create pdb most --selector=app=none --max-unavailable=50%', 'poddisruptionbudget.policy/most created', { since: 21 }),
    says('get pdb', [/NAME +MIN AVAILABLE +MAX UNAVAILABLE +ALLOWED DISRUPTIONS +AGE\nleast +1 +N\/A +1 /, /most +N\/A +50% +0 /], { until: true, since: 21 }),
    says(
      'create priorityclass creating-high --value=1000 --description=important --preemption-policy=Never',
      'priorityclass.scheduling.k8s.io/creating-high created',
    ),
    says('get priorityclass creating-high', /NAME +VALUE +GLOBAL-DEFAULT +AGE.*\ncreating-high +1000 +false /),
    says('create quota limits --hard=pods=5,services=2', 'resourcequota/limits created'),
    says('create quota effort --hard=pods=1 --scopes=BestEffort', 'resourcequota/effort created'),
    says(data('quota/effort', '{.spec}'), '{"hard":{"pods":"1"},"scopes":["BestEffort"]}'),
    says('delete quota --all', /"effort" deleted/),
    says('create role one-pod --verb=get --resource=pods --resource-name=web', 'role.rbac.authorization.k8s.io/one-pod created'),
    fails('create role nothing --verb=get --resource=nonsense', /the server doesn't have a resource type "nonsense"/),
    says('create rolebinding one --role=one-pod --user=jane', 'rolebinding.rbac.authorization.k8s.io/one created'),
    says('get rolebinding one', /NAME +ROLE +AGE\none +Role\/one-pod /),
    says('create secret generic word --from-literal=password=secret', 'secret/word created'),
    says('create secret tls certificate --cert=tls.crt --key=tls.key', 'secret/certificate created'),
    says(
      'create secret docker-registry registry --docker-server=r.example --docker-username=u --docker-password=p --docker-email=e@example',
      'secret/registry created',
    ),
    says('get secrets', [/NAME +TYPE +DATA +AGE\ncertificate +kubernetes\.io\/tls +2 /, /registry +kubernetes\.io\/dockerconfigjson +1 /, /word +Opaque +1 /]),
    says('create service clusterip inside --tcp=80:8080', 'service/inside created'),
    says('create service clusterip headless --clusterip=None', 'service/headless created'),
    says('create service nodeport outside --tcp=80:8080 --node-port=30987', 'service/outside created'),
    fails(
      'create service nodeport again --tcp=80:8080 --node-port=30987',
      /spec\.ports\[0\]\.nodePort: Invalid value: 30987: provided port is already allocated/,
    ),
    says('create service loadbalancer balanced --tcp=80:8080', 'service/balanced created'),
    says(`wait --for=jsonpath='{.status.loadBalancer.ingress[0].ip}'=198.18.0.1 service/balanced`, 'service/balanced condition met', { since: 23 }),
    says('create service externalname elsewhere --external-name=example.com', 'service/elsewhere created'),
    says('get services', [
      /NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE\n/,
      /balanced +LoadBalancer +10\.96\.\S+ +198\.18\.0\.1,\S+ +80:3\d+\/TCP /,
      /elsewhere +ExternalName +<none> +example\.com +<none> /,
      /headless +ClusterIP +None +<none> +<none> /,
      /inside +ClusterIP +10\.96\.\S+ +<none> +80\/TCP /,
      /outside +NodePort +10\.96\.\S+ +<none> +80:30987\/TCP /,
    ]),
    says('create serviceaccount robot', 'serviceaccount/robot created'),
    says('create token robot --duration=1h --audience=somebody', /^[\w-]+\.[\w-]+\.[\w-]+$/m, { since: 24 }),
    fails('create token robot --duration=1s', /may not specify a duration less than 10 minutes/, { since: 24 }),
    says('create token robot --bound-object-kind=Secret --bound-object-name=word', /^[\w-]+\.[\w-]+\.[\w-]+$/m, { since: 24 }),
    fails('create token nobody', /serviceaccounts "nobody" not found/, { since: 24 }),

    says('expose deployment web --port=80 --target-port=8080 --name=web-service --type=NodePort', 'service/web-service exposed'),
    says(data('service/web-service', '{.spec.selector} {.spec.ports[0].port}:{.spec.ports[0].targetPort}'), '{"app":"web"} 80:8080'),
    says('expose service web-service --name=web-again --port=81', 'service/web-again exposed'),
    fails('expose deployment web --port=80 --name=web-service', /services "web-service" already exists/),
    fails('expose configmap literal --port=80', /cannot expose a ConfigMap/),

    says('run single --image=busybox --labels=a=b --env=X=1 --port=80 --expose', [/service\/single created/, /pod\/single created/]),
    fails('run single --image=busybox', /pods "single" already exists/),
    says(data('pod/single', '{.metadata.labels} {.spec.containers[0].env[0].value} {.spec.restartPolicy}'), '{"a":"b"} 1 Always'),
    says('run command --image=busybox --restart=Never --command -- sleep 1000', 'pod/command created'),
    says(data('pod/command', '{.spec.containers[0].command} {.spec.restartPolicy}'), '["sleep","1000"] Never'),
    says('run preview --image=busybox --dry-run=client -o yaml', /restartPolicy: Always/),
    says(`run important --image=busybox --overrides='{"spec":{"priorityClassName":"creating-high"}}'`, 'pod/important created'),
    says(data('pod/important', '{.spec.priority} {.spec.preemptionPolicy}'), '1000 Never'),
  ],
}
