import { appsBehaviours } from './index.ts'
import { runBehaviours } from './run.ts'

runBehaviours('behave-apps', appsBehaviours)
