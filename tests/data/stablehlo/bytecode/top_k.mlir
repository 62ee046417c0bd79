module @top_k {
  func.func public @main(%arg0: tensor<4x6xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
    %0:2 = chlo.top_k(%arg0, k = 2) : tensor<4x6xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)
    return %0#0, %0#1 : tensor<4x2xf32>, tensor<4x2xi32>
  }
}
