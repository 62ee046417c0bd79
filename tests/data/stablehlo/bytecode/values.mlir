module @"<lambda> of x" attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @"a b" = <["x"=2, "y\22z"=2]>
  func.func public @main(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@"a b", [{"x"}, {"y\22z"}]>}, %n: tensor<i32>) -> (tensor<2xi4>, tensor<3xui4>, tensor<9xi1>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<i32>) {
    %i4 = stablehlo.constant dense<[-1, 3]> : tensor<2xi4>
    %u4 = stablehlo.constant dense<[15, 3, 8]> : tensor<3xui4>
    %i1 = stablehlo.constant dense<[true, false, true, true, false, false, false, true, true]> : tensor<9xi1>
    %k = stablehlo.custom_call @kernel(%a) {api_version = 4 : i32, backend_config = {bits = dense<[true, false]> : tensor<2xi1>, big = 18446744073709551615 : ui64, down = -1 : i32, eps = 1.000000e-01 : f32, inf = 0x7F800000 : f32, list = [1, 2, 1.500000e+00], many = dense<true> : tensor<9xi1>, small = 1.234567891e-20 : f64, text = "it's \C3\A9 \01\\", third = 0.333333343 : f32, wide = 1.234560e+05 : f64}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %l = func.call @"<lambda>"(%k) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %loop = stablehlo.while(%i = %zero) : tensor<i32> attributes {mhlo.sharding = "{replicated}"}
    cond {
      %lt = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    } do {
      %j = stablehlo.add %i, %n : tensor<i32>
      stablehlo.return %j : tensor<i32>
    }
    return %i4, %u4, %i1, %k, %l, %loop : tensor<2xi4>, tensor<3xui4>, tensor<9xi1>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<i32>
  }
  func.func private @"<lambda>"(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %y = stablehlo.exponential %x : tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}
