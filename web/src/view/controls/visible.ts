/** Hidden characters made visible, for views. The rules are the model's. */

export { plainly, visible } from "../../model/visible";
