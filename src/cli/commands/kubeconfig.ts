/** `skiff kubeconfig get [NAME]`: the cluster's kubeconfig on standard output; no file is touched (L4). */
import { type CliCommand, resolveCluster } from '../command.ts'
import { kubeconfigText } from '../kubeconfigFile.ts'

export const kubeconfig: CliCommand = {
  name: 'kubeconfig',
  register: (program, context) => {
    program
      .command('kubeconfig')
      .description('the kubeconfig of a cluster')
      .command('get [name]')
      .description('print it')
      .action(async (name: string | undefined) => {
        context.stdout.write(kubeconfigText(await context.clusters.kubeconfig(await resolveCluster(context, name))))
      })
  },
}
